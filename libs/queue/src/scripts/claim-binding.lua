local function claim(key, value)
  redis.call('SETNX', key, value)
  return redis.call('GET', key)
end
local holder = claim(uidKey, uid)
if holder ~= uid then return { holder } end
if shards == 'any' then return { holder } end
local known = claim(shardsKey, shards)
if known == shards then
  for _, entry in ipairs(each) do redis.call('HSET', controllers, entry.field, entry.value) end
end
return { holder, known }
