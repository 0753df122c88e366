if redis.call('HDEL', pauses, field) == 0 then return 0 end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
logAction(actions, noteAt(action, now))
if redis.call('EXISTS', parked) == 1 then redis.call('SET', resuming, string.format('%d ', now + claimMs)) end
return 1
