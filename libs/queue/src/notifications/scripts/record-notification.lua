if redis.call('GET', leader) ~= process then return 0 end
if redis.call('HGET', waiting, subscription) ~= id then return 0 end
redis.call('HSET', messages, id, content)
if ended then redis.call('HDEL', waiting, subscription) end
return 1
