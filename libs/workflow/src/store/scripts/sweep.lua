forget(endedRuns, index, statuses, now - retentionMs, most)
local due = redis.call('ZRANGEBYSCORE', wakes, '-inf', now, 'LIMIT', 0, most)
for _, id in ipairs(due) do redis.call('ZADD', wakes, now + GRACE_MS, id) end
local waiting = redis.call('ZRANGEBYSCORE', rechecks, '-inf', now, 'LIMIT', 0, most)
if #waiting > 0 and redis.call('SET', recheckGap, '1', 'NX', 'PX', RECHECK_GAP_MS) then
  for _, id in ipairs(waiting) do
    redis.call('ZADD', rechecks, now + RECHECK_MS, id)
    due[#due + 1] = id
  end
end
return due
