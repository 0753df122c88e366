local h = redis.call('HMGET', run, 'epoch', 'parentWorkflow', 'parent', 'next', 'wakeSeq', 'failing', 'status', 'createdAt',
  'watched', 'notify')
if h[1] ~= epoch then return { 'fenced' } end
local left = { 'left', h[2], h[3], h[4] or '', h[10] or '' }
if ended(h[7]) then return left end
if published ~= '' then redis.call('HSET', run, 'published', published) end
if kind == 'compensating' then
  redis.call('HSET', run, 'failing', text)
  if isPaused(h[7]) then
    redis.call('HSET', run, 'pausedFrom', kind)
  else
    move(statuses, id, h[7], kind, h[8])
    redis.call('HSET', run, 'status', kind)
  end
  return left
end
leaveWaits(waitRoot, waitKinds, rechecks, run, id, h[9], objects, member)
if kind == 'waiting' or kind == 'blocked' then
  local status = (kind == 'waiting' and h[6]) and 'compensating' or kind
  if isPaused(h[7]) then
    acknowledgePause(run, id, statuses, h[8])
    redis.call('HSET', run, 'pausedFrom', status)
  else
    move(statuses, id, h[7], status, h[8])
    redis.call('HSET', run, 'status', status)
  end
  redis.call('HSET', run, 'isExecuted', '', 'reason', kind == 'blocked' and text or '', 'waitingUntil', untilMs,
    'blockedError', blockedError, 'waits', kind == 'waiting' and text or '', 'awaited', awaited)
  if isPaused(h[7]) then
    redis.call('ZREM', wakes, id)
    redis.call('ZREM', rechecks, id)
  elseif h[5] ~= wakeSeq then
    redis.call('ZADD', wakes, now, id)
  elseif untilMs ~= '' then
    redis.call('ZADD', wakes, tonumber(untilMs) + GRACE_MS, id)
  else
    redis.call('ZREM', wakes, id)
  end
  return left
end
noteChildEnd(steps, member, run)
left[6] = endRun({ data = { run, steps, signals, signalNames, seen, refusals }, wakes = wakes, endedRuns = endedRuns,
  cancelling = cancelling, holder = holder, index = index, last = last, lastChecks = lastChecks, statuses = statuses },
  run, id, kind, kind == 'done' and 'result' or 'error', text, retentionMs)
return left
