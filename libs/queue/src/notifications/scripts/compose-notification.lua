if redis.call('GET', leader) ~= process then return 0 end
for _, item in ipairs(each) do
  if item.json == '' then
    redis.call('HDEL', told, item.fault)
  else
    redis.call('HSET', told, item.fault, item.json)
  end
end
redis.call('HDEL', groups, subscription)
if id == '' then return 1 end
redis.call('HSET', messages, id, content)
redis.call('ZADD', recent, atMs, id)
redis.call('HSET', waiting, subscription, id)
local extra = redis.call('ZCARD', recent) - most
if extra <= 0 then return 1 end
local kept = {}
for _, each_waiting in ipairs(redis.call('HVALS', waiting)) do kept[each_waiting] = true end
for _, old in ipairs(redis.call('ZRANGE', recent, 0, extra - 1)) do
  if not kept[old] then
    redis.call('ZREM', recent, old)
    redis.call('HDEL', messages, old)
  end
end
return 1
