if redis.call('GET', leader) ~= process then return 0 end
if redis.call('HGET', waiting, receiver) ~= id then return 0 end
redis.call('HSET', messages, id, content)
if ended then redis.call('HDEL', waiting, receiver) end
return 1
