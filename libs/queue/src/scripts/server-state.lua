local now = redis.call('TIME')
local info = redis.call('INFO', 'memory') .. redis.call('INFO', 'replication')
return { info, now[1] * 1000 + math.floor(now[2] / 1000) }
