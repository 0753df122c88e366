if redis.call('HDEL', pauses, field) == 0 then return 0 end
logAction(actions, noteAt(action, now))
if redis.call('EXISTS', parked) == 1 then redis.call('SET', resuming, string.format('%d ', now + claimMs)) end
return 1
