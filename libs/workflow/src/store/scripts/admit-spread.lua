local h = redis.call('HMGET', run, 'status', 'createdAt', 'round', 'reopened')
if not h[1] or ended(h[1]) or h[2] ~= createdAt or (h[3] or '1') ~= round or (h[4] or '0') ~= reopened then return 'over' end
local SPREAD_HELD = '{"attempts":0,"untilMs":0,"heldBack":true}'
local field = step .. '~'
local noted = redis.call('HGET', steps, field)
if not always and h[1] ~= 'paused' and h[1] ~= 'pausing' then
  if noted == SPREAD_HELD then redis.call('HSET', steps, field, CHILD_ACTIVE) end
  return 'active'
end
if noted then redis.call('HSET', steps, field, SPREAD_HELD) end
if always then
  redis.call('HINCRBY', run, 'wakeSeq', 1)
  redis.call('ZADD', wakes, 'LT', now + GRACE_MS, id)
end
return 'held'
