forget(id)
redis.call('SET', root .. '/plans/' .. id, record, 'PX', keptMs)
redis.call('ZADD', ages, nowText, id)
redis.call('HSET', sizes, id, #record)
redis.call('HINCRBY', sizes, '', #record)
redis.call('LREM', plans, 0, id)
redis.call('LPUSH', plans, id)
for _, each in ipairs(redis.call('LRANGE', plans, MOST_OF_OBJECT, -1)) do forget(each) end
redis.call('LTRIM', plans, 0, MOST_OF_OBJECT - 1)
-- Redis has deleted their records.
for _, each in ipairs(redis.call('ZRANGEBYSCORE', ages, '-inf', now - keptMs, 'LIMIT', 0, MOST_FORGOTTEN)) do
  forget(each)
end
local forgotten = 0
while tonumber(redis.call('HGET', sizes, '') or '0') > MOST_BYTES and forgotten < MOST_FORGOTTEN do
  local oldest = redis.call('ZRANGE', ages, 0, 0)[1]
  if not oldest or oldest == id then break end
  forget(oldest)
  forgotten = forgotten + 1
end
for _, key in ipairs({ plans, ages, sizes }) do redis.call('PEXPIRE', key, keptMs) end
return redis.status_reply('OK')
