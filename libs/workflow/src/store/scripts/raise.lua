local status = redis.call('HGET', run, 'status')
if not status then return 'missing' end
if ended(status) then return 'ended' end
local given = { limitSteps = steps, limitBytes = bytes }
for field, limit in pairs(given) do
  local known = tonumber(redis.call('HGET', run, field) or '0')
  if limit ~= '' and tonumber(limit) < known then return 'low' end
end
for field, limit in pairs(given) do
  if limit ~= '' then redis.call('HSET', run, field, limit) end
end
redis.call('HINCRBY', run, 'wakeSeq', 1)
redis.call('ZADD', wakes, 'LT', now + GRACE_MS, id)
return 'raised'
