local h = redis.call('HMGET', run, 'status', 'epoch', 'parentWorkflow', 'parent', 'next', 'notify', 'watched', 'after',
  'terminated')
local status, following = h[1], h[5] or ''
if not status then return { 'missing' } end
local followers = { h[3], h[4], following, h[6] or '' }
-- The same request again, since a lost connection repeats the call.
if ended(status) then return { h[9] == request and 'terminated' or 'ended', unpack(followers) } end
local keptMs = tonumber(redis.call('HGET', statuses .. 'kept', 'ms') or retentionMs)
local before = lineFrom(h[8], runRoot, 1)[1]
if isQueued and not (status == 'queued' and before) then return { 'active' } end
leaveWaits(waitRoot, waitKinds, rechecks, run, id, h[7], '', member)
-- An execution at work has an older epoch.
local epoch = int(math.max(tonumber(h[2]) + 1, now))
redis.call('HSET', run, 'epoch', epoch)
if not isQueued then redis.call('HSET', run, 'terminated', request) end
-- The run after it now waits for the run before it. If there is none after it, the run before it holds the key.
if before then
  local behind = following ~= '' and redis.call('HGET', runRoot .. following, 'status')
  if behind and not ended(behind) then
    redis.call('HSET', runRoot .. following, 'after', before)
    redis.call('HSET', runRoot .. before, 'next', following)
  elseif redis.call('GET', holder) == id then
    redis.call('SET', holder, before)
  end
end
noteChildEnd(steps, member, run)
followers[5] = endRun({ data = { run, steps, signals, signalNames, seen, refusals }, wakes = wakes, endedRuns = endedRuns,
  cancelling = cancelling, holder = holder, index = index, last = last, lastChecks = lastChecks, statuses = statuses },
  run, id, 'cancelled', 'error', error, keptMs)
-- Until a worker claims it: `fences` aborts its execution, `wakes` wakes its followers if the caller does not.
redis.call('HSET', fences, id, epoch)
redis.call('ZADD', wakes, now + GRACE_MS, id)
return { 'terminated', unpack(followers) }
