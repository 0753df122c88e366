local function count(id, record)
  redis.call('ZADD', ages, nowText, id)
  redis.call('HSET', sizes, id, #record)
  redis.call('HINCRBY', sizes, '', #record)
end

local function forgetOldest(newest, afterMs)
  for _, each in ipairs(redis.call('ZRANGEBYSCORE', ages, '-inf', now - afterMs, 'LIMIT', 0, MOST_FORGOTTEN)) do
    forget(each)
  end
  local forgotten = 0
  while tonumber(redis.call('HGET', sizes, '') or '0') > MOST_BYTES and forgotten < MOST_FORGOTTEN do
    local oldest = redis.call('ZRANGE', ages, 0, 0)[1]
    if not oldest or oldest == newest then break end
    forget(oldest)
    forgotten = forgotten + 1
  end
end
