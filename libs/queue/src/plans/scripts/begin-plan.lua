local state = redis.call('GET', plan)
local isOwn = state == 'running' and redis.call('GET', lease) == run
if state ~= 'waiting' and not isOwn then return 0 end
redis.call('SET', plan, 'running', 'PX', runningMs)
redis.call('SET', lease, run, 'PX', leaseMs)
return 1
