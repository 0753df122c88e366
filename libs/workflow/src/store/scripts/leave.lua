local function leaveRun(call)
  local run, steps, wakes, rechecks, waitKinds = call.run, call.steps, call.wakes, call.rechecks, call.waitKinds
  local kind, text, id, untilMs, member = call.kind, call.text, call.id, call.untilMs, call.member
  local h = redis.call('HMGET', run, 'epoch', 'parentWorkflow', 'parent', 'next', 'wakeSeq', 'failing', 'status', 'createdAt',
    'watched', 'notify', 'blockedAt')
  if h[1] ~= call.epoch then return { 'fenced' } end
  local left = { 'left', h[2], h[3], h[4] or '', h[10] or '' }
  if ended(h[7]) then return left end
  if call.published ~= '' then redis.call('HSET', run, 'published', call.published) end
  if kind == 'compensating' then
    redis.call('HSET', run, 'failing', text)
    redis.call('HDEL', run, 'blockedAt')
    if isPaused(h[7]) then
      redis.call('HSET', run, 'pausedFrom', kind)
    else
      move(call.statuses, id, h[7], kind, h[8])
      redis.call('HSET', run, 'status', kind)
    end
    return left
  end
  leaveWaits(call.waitRoot, waitKinds, rechecks, run, id, h[9], call.objects, member)
  if kind == 'waiting' or kind == 'blocked' then
    local status = (kind == 'waiting' and h[6]) and 'compensating' or kind
    if isPaused(h[7]) then
      acknowledgePause(run, id, call.statuses, h[8])
      redis.call('HSET', run, 'pausedFrom', status)
    else
      move(call.statuses, id, h[7], status, h[8])
      redis.call('HSET', run, 'status', status)
    end
    -- A recheck that finds it blocked again keeps the time.
    if kind == 'blocked' and not h[11] then redis.call('HSET', run, 'blockedAt', now) end
    -- So does an undo that waits between its tries.
    local isUndoing = kind == 'waiting' and h[6]
    if kind == 'waiting' and not isUndoing and h[11] then redis.call('HDEL', run, 'blockedAt') end
    if not isUndoing then redis.call('HSET', run, 'reason', kind == 'blocked' and text or '') end
    redis.call('HSET', run, 'isExecuted', '', 'waitingUntil', untilMs,
      'blockedError', call.blockedError, 'waits', kind == 'waiting' and text or '', 'awaited', call.awaited)
    if isPaused(h[7]) then
      redis.call('ZREM', wakes, id)
      redis.call('ZREM', rechecks, id)
    elseif h[5] ~= call.wakeSeq then
      redis.call('ZADD', wakes, now, id)
    elseif untilMs ~= '' then
      redis.call('ZADD', wakes, tonumber(untilMs) + GRACE_MS, id)
    else
      redis.call('ZREM', wakes, id)
    end
    return left
  end
  noteChildEnd(steps, member, run)
  left[6] = endRun({ data = { run, steps, call.signals, call.signalNames, call.seen, call.refusals }, wakes = wakes, endedRuns = call.endedRuns,
    cancelling = call.cancelling, holder = call.holder, index = call.index, last = call.last, lastChecks = call.lastChecks,
    statuses = call.statuses },
    run, id, kind, kind == 'done' and 'result' or 'error', text, call.retentionMs)
  return left
end
local answers = {}
for i, call in ipairs(each) do answers[i] = leaveRun(call) end
return answers
