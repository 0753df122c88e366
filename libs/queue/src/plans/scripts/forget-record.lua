local function forget(id)
  redis.call('DEL', records .. id)
  redis.call('ZREM', ages, id)
  local size = redis.call('HGET', sizes, id)
  if size then redis.call('HINCRBY', sizes, '', '-' .. size) end
  redis.call('HDEL', sizes, id)
end
