for _, expired in ipairs(redis.call('ZRANGEBYSCORE', seen, '-inf', now - ttlMs)) do
  redis.call('ZREM', seen, expired)
  redis.call('HDEL', reports, expired)
end
redis.call('ZADD', seen, now, worker)
redis.call('HSET', reports, worker, report)
redis.call('PEXPIRE', seen, ttlMs)
redis.call('PEXPIRE', reports, ttlMs)
return 1
