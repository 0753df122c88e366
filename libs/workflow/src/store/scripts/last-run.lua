local function isNewer(one, other)
  local a, b = tonumber(one or ''), tonumber(other or '')
  return a ~= nil and b ~= nil and a > b
end
local function isRetryOf(one, id)
  return string.sub(one, 1, #id + 1) == id .. '~' and string.find(one, '^%d+$', #id + 2) ~= nil
end
local function keepLast(last, lastChecks, key, record)
  local known = redis.call('HMGET', last, 'uid', 'generation')
  if known[1] == record.uid and isNewer(known[2], record.generation) then return end
  redis.call('DEL', last)
  redis.call('HSET', last, 'id', record.id, 'uid', record.uid, 'generation', record.generation, 'object', record.object,
    'status', record.status, 'text', #record.text > MAX_KEPT_TEXT and '' or record.text)
  redis.call('ZADD', lastChecks, now + LAST_CHECK_MS, key)
end
local function findLast(last, lastChecks, key, id, uid, generation)
  local known = redis.call('HMGET', last, 'uid', 'id', 'generation', 'status', 'text')
  if known[1] ~= uid then return nil end
  local other = known[2]
  if other ~= id and not isRetryOf(other, id) and not isNewer(known[3], generation) then return nil end
  if redis.call('PERSIST', last) == 1 then redis.call('ZADD', lastChecks, now + LAST_CHECK_MS, key) end
  return { 'attached', other, known[4], known[5] }
end
