local h = redis.call('HMGET', run, 'status', 'epoch', 'key', 'createdAt')
local status = h[1]
if (status ~= 'failed' and status ~= 'cancelled') or h[2] ~= epoch then return { 'changed' } end
if h[3] ~= '' then
  local known = redis.call('GET', holder)
  local other = known and known ~= id and redis.call('HGET', runRoot .. known, 'status')
  if other and not ended(other) then return { 'rejected', known } end
  redis.call('SET', holder, id)
end
for _, dropped in ipairs(each) do
  redis.call('HDEL', steps, dropped.field)
  if dropped.update ~= '' then
    redis.call('HDEL', answers, dropped.update)
    redis.call('ZREM', seen, dropped.signal)
  end
end
for _, name in ipairs({ run, steps, signals, signalNames, seen, refusals }) do redis.call('PERSIST', name) end
redis.call('HDEL', run, 'result', 'error', 'logged', 'endedAt', 'cancel', 'cancelledAt', 'cancels', 'failing', 'next', 'terminated')
redis.call('HINCRBY', run, 'epoch', 1)
redis.call('HINCRBY', run, 'reopened', 1)
redis.call('HINCRBY', run, 'wakeSeq', 1)
redis.call('HSET', run, 'status', 'queued', 'seq', kept, 'retry', author, 'after', '', 'waits', '', 'awaited', '', 'died', '', 'slot', '')
move(statuses, id, status, 'queued', h[4])
redis.call('ZREM', endedRuns, id)
local size = redis.call('HGET', run, 'size')
if size then dropSize(statuses, size .. '/' .. id) end
redis.call('HDEL', fences, id)
redis.call('ZADD', wakes, now + GRACE_MS, id)
return { 'resumed' }
