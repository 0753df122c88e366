local function dropRun(endedRuns, index, statuses, id)
  redis.call('ZREM', endedRuns, id)
  redis.call('ZREM', index, id)
  unlabel(statuses, id)
  for _, status in ipairs({ 'done', 'failed', 'cancelled' }) do redis.call('ZREM', statuses .. status, id) end
end
local function forget(endedRuns, index, statuses, beforeMs, most)
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', endedRuns, '-inf', beforeMs, 'LIMIT', 0, most)) do
    dropRun(endedRuns, index, statuses, id)
  end
  for _, member in ipairs(redis.call('ZRANGEBYSCORE', statuses .. 'sizes', '-inf', beforeMs, 'LIMIT', 0, most)) do
    dropSize(statuses, member)
  end
end
