local time = redis.call('TIME')
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
for _, expired in ipairs(redis.call('ZRANGEBYSCORE', seen, '-inf', nowMs - ttlMs)) do
  redis.call('ZREM', seen, expired)
  redis.call('HDEL', reports, expired)
end
redis.call('ZADD', seen, nowMs, worker)
redis.call('HSET', reports, worker, report)
redis.call('PEXPIRE', seen, ttlMs)
redis.call('PEXPIRE', reports, ttlMs)
return 1
