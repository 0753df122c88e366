local function forget(each)
  redis.call('DEL', root .. '/approval-plans/' .. each)
  redis.call('ZREM', ages, each)
  local size = redis.call('HGET', sizes, each)
  if size then redis.call('HINCRBY', sizes, '', '-' .. size) end
  redis.call('HDEL', sizes, each)
end

if (redis.call('HGET', approvals, key) or '') ~= expected then return 'changed' end
if stored == '' then
  redis.call('HDEL', approvals, key)
else
  redis.call('HSET', approvals, key, stored)
end
if isDue then
  redis.call('SADD', due, key)
else
  redis.call('SREM', due, key)
end
if stored == '' then
  forget(key)
elseif record ~= '' then
  forget(key)
  redis.call('SET', root .. '/approval-plans/' .. key, record)
  redis.call('ZADD', ages, nowText, key)
  redis.call('HSET', sizes, key, #record)
  redis.call('HINCRBY', sizes, '', #record)
  for _, each in ipairs(redis.call('ZRANGEBYSCORE', ages, '-inf', now - KEPT_MS, 'LIMIT', 0, MOST_FORGOTTEN)) do
    forget(each)
  end
  local forgotten = 0
  while tonumber(redis.call('HGET', sizes, '') or '0') > MOST_BYTES and forgotten < MOST_FORGOTTEN do
    local oldest = redis.call('ZRANGE', ages, 0, 0)[1]
    if not oldest or oldest == key then break end
    forget(oldest)
    forgotten = forgotten + 1
  end
end
return 'done'
