local status = redis.call('HGET', run, 'status')
if not status then return 'missing' end
if ended(status) then return 'ended' end
for field, limit in pairs({ limitSteps = steps, limitBytes = bytes }) do
  local known = tonumber(redis.call('HGET', run, field) or '0')
  if limit ~= '' and tonumber(limit) > known then redis.call('HSET', run, field, limit) end
end
redis.call('HINCRBY', run, 'wakeSeq', 1)
redis.call('ZADD', wakes, 'LT', now + GRACE_MS, id)
return 'raised'
