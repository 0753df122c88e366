local known = redis.call('HMGET', run, 'status', 'parent')
local existing = known[1]
if parentStep ~= '' and not (existing and ended(existing)) then
  if existing and (known[2] or '') == '' then
    redis.call('HSET', run, 'parentWorkflow', parentWorkflow, 'parent', parent, 'parentStep', parentStep, 'parentRound', parentRound)
  end
  noteChildActive(parentRun, parentRound, parentSteps, parentStep)
end
if existing then return { 'exists' } end
local after, replaces = '', ''
if key ~= '' then
  local kept = uid ~= '' and findLast(last, lastChecks, key, id, uid, generation)
  if kept then return kept end
  local other = redis.call('GET', holder)
  local known = other and redis.call('HMGET', runRoot .. other, 'status', 'uid', 'generation') or {}
  local status = known[1]
  if uid ~= '' and known[2] == uid and isNewer(known[3], generation) then
    return { 'attached', other }
  end
  if status and not ended(status) then
    if onExisting == 'attach' then return { 'attached', other } end
    if onExisting == 'reject' then return { 'rejected', other } end
    local line = lineFrom(other, runRoot, MAX_LINE)
    if onExisting == 'queue' then
      if #line > maxQueued then return { 'full', other } end
    else
      for _, replaced in ipairs(line) do
        noteCancel(runRoot .. replaced, wakes, cancelling, replaced, cjson.encode({ reason = 'superseded by ' .. id }))
      end
      replaces = line[#line]
    end
    after = other
    redis.call('HSET', runRoot .. other, 'next', id)
  end
  redis.call('SET', holder, id)
end
-- An earlier run with the id may have left entries that are kept longer than the run.
redis.call('UNLINK', answers, answeredIds, logs)
dropRun(endedRuns, index, statuses, id)
redis.call('HDEL', fences, id)
redis.call('HSET', run, 'status', 'queued', 'version', version, 'input', input, 'key', key, 'parentWorkflow', parentWorkflow,
  'parent', parent, 'parentStep', parentStep, 'parentRound', parentRound, 'by', by, 'retry', retry, 'uid', uid, 'generation', generation, 'object', object, 'notify', notify, 'after', after,
  'createdAt', int(now), 'epoch', '0', 'lease', '0', 'wakeSeq', '0', 'seq', '0')
if scheduledAt ~= '' then redis.call('HSET', run, 'scheduledAt', scheduledAt) end
redis.call('ZADD', index, now, id)
if labels ~= '' then
  redis.call('HSET', run, 'labels', labels)
  relabel(statuses, id, labels, now)
end
move(statuses, id, nil, 'queued', now)
redis.call('ZADD', wakes, now + GRACE_MS, id)
return { 'created', replaces }
