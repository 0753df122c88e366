if redis.call('GET', plan) ~= 'waiting' then return 0 end
-- A worker begins the plan, or another caller has checked it.
if not redis.call('SET', lease, '', 'PX', checkMs, 'NX') then return 0 end
if redis.call('LLEN', list) >= mostWaiting or redis.call('LPOS', list, request) then return 0 end
redis.call('LPUSH', list, request)
redis.call('PEXPIRE', list, keptMs)
return 1
