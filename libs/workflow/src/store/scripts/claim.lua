local function claimRun(call)
  local run, steps, signals, signalNames, wakes, codes, fences =
    call.run, call.steps, call.signals, call.signalNames, call.wakes, call.codes, call.fences
  local lease, owner, anew, code, id, runRoot, statuses =
    call.lease, call.owner, call.anew, call.code, call.id, call.runRoot, call.statuses
  local h = redis.call('HMGET', run, 'status', 'lease', 'owner', 'after', 'parentWorkflow', 'parent', 'next', 'failing',
    'createdAt', 'notify', 'died', 'awaited', 'version', 'continuedBy', 'slot', 'cancel')
  local status, heldLease, after = h[1], tonumber(h[2]), h[4] or ''
  if not status or ended(status) then
    -- A terminated run is noted for its execution and its followers.
    redis.call('ZREM', wakes, id)
    redis.call('HDEL', fences, id)
    if not status then return { 'missing' } end
    return { 'ended', h[5], h[6], h[7] or '', h[10] or '' }
  end
  if status == 'paused' then
    redis.call('ZREM', wakes, id)
    return { 'paused' }
  end
  local isSame = h[3] == owner
  if not isSame and not anew and tonumber(lease) <= heldLease then return { 'fenced' } end
  if status == 'pausing' then
    -- The execution before this one was lost. A larger epoch keeps it from recording anything after the pause.
    redis.call('HSET', run, 'epoch', int(math.max(tonumber(redis.call('HGET', run, 'epoch')) + 1, now)))
    acknowledgePause(run, id, statuses, h[9])
    redis.call('ZREM', wakes, id)
    return { 'paused' }
  end
  if string.sub(h[15] or '', 1, 1) == '?' then
    -- A cancelled run does not wait: it ends at once, or undoes the steps that it had before its retry.
    if not h[16] then
      redis.call('ZREM', wakes, id)
      return { 'waiting' }
    end
    leaveSlotLine(statuses, run, id, h[15])
  end
  if code ~= '' and not codeFits(code, h[13], h[14]) and liveCodeFits(codes, h[13], h[14]) then
    return { 'unfit', redis.call('HINCRBY', run, 'handedBack', 1) }
  end
  redis.call('ZADD', wakes, now + HELD_CHECK_MS, id)
  if after ~= '' then
    if #lineFrom(after, runRoot, 1) > 0 then return { 'waiting' } end
    redis.call('HSET', run, 'after', '')
  end
  local epoch = redis.call('HGET', run, 'epoch')
  if not isSame then
    -- At least the time, so that no epoch repeats after a failover that lost claims.
    epoch = int(math.max(tonumber(epoch) + 1, now))
    redis.call('HSET', run, 'epoch', epoch)
  end
  redis.call('HSETNX', run, 'startedAt', int(now))
  local taken = h[8] and 'compensating' or 'running'
  move(statuses, id, status, taken, h[9])
  -- A worker whose code does not fit blocks the run without running a step.
  local died = h[11] == '1'
  -- The same owner repeats a call whose response was lost.
  if not (isSame and status == 'running') then died = status == 'running' or (status == 'blocked' and died) end
  redis.call('HSET', run, 'status', taken, 'lease', lease, 'owner', owner,
    'waitingUntil', '', 'died', died and '1' or '', 'handedBack', '0', 'isExecuted', '1')
  -- An undo that is tried again keeps the reason until it is undone, like a problem that has not ended.
  if not h[8] then redis.call('HSET', run, 'reason', '') end
  local awaited = {}
  for name in string.gmatch(h[12] or '', '[^\n]+') do
    for _, text in ipairs(readSignals(signals, signalNames, name, 1)) do awaited[#awaited + 1] = text end
  end
  return { 'held', epoch, int(now), redis.call('HGETALL', run), redis.call('HGETALL', steps),
    redis.call('HLEN', signals), awaited }
end
local answers, read = {}, 0
for i, call in ipairs(each) do
  read = read + redis.call('HLEN', call.steps)
  -- A call with several long journals would block Redis for their sum.
  if i > 1 and read > MOST_READ then
    answers[i] = { 'alone' }
  else
    answers[i] = claimRun(call)
  end
end
return answers
