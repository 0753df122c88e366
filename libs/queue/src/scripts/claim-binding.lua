local function claim(key, value)
  redis.call('SETNX', key, value)
  return redis.call('GET', key)
end
-- Data without a stamp was written before stamps.
local unstamped = redis.call('EXISTS', uidKey) == 1 and old or newest
local holder = claim(uidKey, uid)
if holder ~= uid then return { holder, '', '' } end
redis.call('HSETNX', formatKey, 'format', unstamped)
local format = redis.call('HGET', formatKey, 'format')
if tonumber(format) < tonumber(oldest) or tonumber(format) > tonumber(newest) then return { holder, '', format } end
if shards == 'any' then return { holder, '', format } end
local known = claim(shardsKey, shards)
if known == shards then
  for _, entry in ipairs(each) do redis.call('HSET', controllers, entry.field, entry.value) end
end
return { holder, known, format }
