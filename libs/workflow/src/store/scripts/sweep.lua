-- Other processes end runs as well, without the code of the workflow.
redis.call('HSET', statuses .. 'kept', 'ms', retentionMs)
forget(endedRuns, index, statuses, now - retentionMs, most)
local dropped = limitBytes ~= '' and shrink(endedRuns, index, statuses, runRoot, tonumber(limitBytes), most) or 0
local due = redis.call('ZRANGEBYSCORE', wakes, '-inf', now, 'LIMIT', 0, most)
for _, id in ipairs(due) do redis.call('ZADD', wakes, now + GRACE_MS, id) end
local waiting = redis.call('ZRANGEBYSCORE', rechecks, '-inf', now, 'LIMIT', 0, most)
if #waiting > 0 and redis.call('SET', recheckGap, '1', 'NX', 'PX', RECHECK_GAP_MS) then
  for _, id in ipairs(waiting) do
    redis.call('ZADD', rechecks, now + RECHECK_MS, id)
    due[#due + 1] = id
  end
end
for _, group in ipairs(redis.call('SPOP', statuses .. 'slotRests', MOST_GROUPS)) do
  for _, id in ipairs(passSlots(statuses, wakes, runRoot, group)) do due[#due + 1] = id end
end
-- A holder was deleted by hand, or ended by a worker whose version has no slots.
local checked = redis.call('SRANDMEMBER', statuses .. 'slotLines')
if checked then
  for _, id in ipairs(redis.call('SRANDMEMBER', statuses .. 'slots/' .. checked, MOST_HOLDERS)) do
    local status = redis.call('HGET', runRoot .. id, 'status')
    if not status or ended(status) then
      redis.call('SREM', statuses .. 'slots/' .. checked, id)
      inheritSlot(statuses, runRoot, id, checked)
    end
  end
  for _, id in ipairs(passSlots(statuses, wakes, runRoot, checked)) do due[#due + 1] = id end
end
local checks = {}
for _, key in ipairs(redis.call('ZRANGEBYSCORE', lastChecks, '-inf', now, 'LIMIT', 0, MOST_CHECKED)) do
  local object = redis.call('HGET', lastRoot .. key, 'object')
  if object then
    redis.call('ZADD', lastChecks, now + LAST_CHECK_MS, key)
    checks[#checks + 1] = key
    checks[#checks + 1] = object
  else
    redis.call('ZREM', lastChecks, key)
  end
end
return { due, checks, redis.call('EXISTS', statuses .. 'slotRests'), dropped }
