local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
logAction(actions, noteAt(action, now))
return redis.call('HSET', pauses, field, noteAt(note, now))
