local key = root .. '/delivery/' .. number
if redis.call('EXISTS', key) == 0 then
  redis.call('ZREM', due, number)
  redis.call('ZREM', received, number)
  return 0
end
if againMs > 0 then
  redis.call('HSET', key, 'error', detail)
  redis.call('HINCRBY', key, 'tries', 1)
  redis.call('ZADD', due, 'XX', int(now + againMs), number)
  return 1
end
local left = redis.call('DECRBY', bytes, redis.call('HSTRLEN', key, 'text'))
if left <= 0 then redis.call('DEL', bytes) end
redis.call('DEL', key)
redis.call('ZREM', due, number)
redis.call('ZREM', received, number)
return 1
