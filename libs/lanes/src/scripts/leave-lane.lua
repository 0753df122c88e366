if redis.call('HGET', lane, 'holder') ~= process then return 0 end
if carry == '' then
  redis.call('HDEL', lane, 'carry', 'carryAtMs')
else
  redis.call('HSET', lane, 'carry', carry, 'carryAtMs', now - ageMs)
end
if stranger then redis.call('HSET', lane, 'strangerAtMs', now) end
redis.call('HDEL', lane, 'wanted')
local nextProcess = redis.call('LPOP', waiting)
if nextProcess then
  redis.call('HSET', lane, 'holder', nextProcess, 'untilMs', now + holdMs)
  redis.call('PUBLISH', channels .. nextProcess, message)
  redis.call('PEXPIRE', lane, 10 * holdMs)
else
  redis.call('HSET', lane, 'holder', '', 'untilMs', 0)
  redis.call('PEXPIRE', lane, 5 * holdMs)
end
return 1
