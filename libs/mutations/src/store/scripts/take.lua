local batch = redis.call('HGET', lane, 'batch')
local ids = {}
if batch then
  ids = cjson.decode(batch)
else
  local group
  local bytes = 0
  for _, id in ipairs(redis.call('ZRANGE', waiting, 0, MAX_BATCH - 1)) do
    local key = root .. '/mutation/' .. id
    local own = redis.call('HGET', key, 'group')
    group = group or own
    -- The first one is taken whatever its size.
    if #ids > 0 then bytes = bytes + redis.call('HSTRLEN', key, 'text') end
    if own ~= group or bytes > MAX_BATCH_BYTES then break end
    ids[#ids + 1] = id
  end
end
if #ids == 0 then
  redis.call('DEL', lane)
  redis.call('ZREM', objects, object)
  return { 'empty' }
end
redis.call('HSET', lane, 'holder', holder)
redis.call('ZADD', objects, int(now + TAKEN_CHECK_MS), object)
if not batch then
  redis.call('HSET', lane, 'batch', cjson.encode(ids))
  redis.call('ZREM', waiting, unpack(ids))
  for _, id in ipairs(ids) do redis.call('HSET', root .. '/mutation/' .. id, 'state', 'applying') end
end
redis.call('SET', root .. '/installation', holder, 'NX')
local answer = { batch and 'journaled' or 'new', int(now), redis.call('HGET', lane, 'plans') or '[]',
  redis.call('GET', root .. '/installation') }
for _, id in ipairs(ids) do
  local row = redis.call('HMGET', root .. '/mutation/' .. id, 'text', 'createdAt')
  answer[#answer + 1] = row[1]
  answer[#answer + 1] = row[2]
end
return answer
