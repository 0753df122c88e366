local h = redis.call('HMGET', run, 'epoch', 'parentWorkflow', 'parent', 'next', 'wakeSeq', 'failing', 'status', 'createdAt',
  'watched', 'notify', 'uid', 'generation', 'object', 'key')
if h[1] ~= epoch then return { 'fenced' } end
local left = { 'left', h[2], h[3], h[4] or '', h[10] or '' }
if ended(h[7]) then return left end
if published ~= '' then redis.call('HSET', run, 'published', published) end
if kind == 'compensating' then
  move(statuses, id, h[7], kind, h[8])
  redis.call('HSET', run, 'status', kind, 'failing', text)
  return left
end
if h[9] and h[9] ~= '' then
  local still = {}
  for object in string.gmatch(objects, '%S+') do still[object] = true end
  for object in string.gmatch(h[9], '%S+') do
    if not still[object] then leaveWait(waitRoot, waitKinds, object, member) end
  end
  redis.call('HSET', run, 'watched', objects)
  if objects == '' then redis.call('ZREM', rechecks, id) else redis.call('ZADD', rechecks, now + RECHECK_MS, id) end
end
if kind == 'waiting' or kind == 'blocked' then
  local status = (kind == 'waiting' and h[6]) and 'compensating' or kind
  move(statuses, id, h[7], status, h[8])
  redis.call('HSET', run, 'status', status, 'reason', kind == 'blocked' and text or '', 'waitingUntil', untilMs,
    'waits', kind == 'waiting' and text or '', 'awaited', awaited)
  if h[5] ~= wakeSeq then
    redis.call('ZADD', wakes, now, id)
  elseif untilMs ~= '' then
    redis.call('ZADD', wakes, tonumber(untilMs) + GRACE_MS, id)
  else
    redis.call('ZREM', wakes, id)
  end
  return left
end
move(statuses, id, h[7], kind, h[8])
redis.call('HSET', run, 'status', kind, kind == 'done' and 'result' or 'error', text, 'endedAt', int(now), 'reason', '',
  'waitingUntil', '', 'waits', '')
redis.call('ZREM', wakes, id)
redis.call('SREM', cancelling, id)
redis.call('ZADD', endedRuns, now, id)
forget(endedRuns, index, statuses, now - retentionMs, 2)
for _, name in ipairs({ run, steps, signals, signalNames, seen, refusals }) do redis.call('PEXPIRE', name, retentionMs) end
if h[13] and h[13] ~= '' then
  keepLast(last, lastChecks, h[14],
    { id = id, uid = h[11], generation = h[12], object = h[13], status = kind, text = text })
end
if redis.call('GET', holder) == id then redis.call('PEXPIRE', holder, retentionMs) end
return left
