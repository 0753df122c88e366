local function endRun(at, run, id, status, field, text, retentionMs)
  local h = redis.call('HMGET', run, 'status', 'createdAt', 'uid', 'generation', 'object', 'key', 'slot')
  move(at.statuses, id, h[1], status, h[2])
  redis.call('HSET', run, 'status', status, field, text, 'endedAt', int(now), 'reason', '', 'waitingUntil', '', 'waits', '')
  redis.call('HDEL', run, 'pause', 'pausedAt', 'pausedFrom')
  redis.call('ZREM', at.wakes, id)
  redis.call('HDEL', at.cancelling, id)
  redis.call('ZADD', at.endedRuns, now, id)
  addSize(at.statuses, run, at.data[2], id)
  forget(at.endedRuns, at.index, at.statuses, now - retentionMs, 2)
  for _, name in ipairs(at.data) do redis.call('PEXPIRE', name, retentionMs) end
  if h[5] and h[5] ~= '' then
    keepLast(at.last, at.lastChecks, h[6],
      { id = id, uid = h[3], generation = h[4], object = h[5], status = status, text = text })
  end
  if redis.call('GET', at.holder) == id then redis.call('PEXPIRE', at.holder, retentionMs) end
  return freeSlot(at.statuses, at.wakes, run, id, h[7])
end
