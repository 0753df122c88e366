local function sizeOf(run, steps)
  local bytes = RUN_BYTES
  for _, field in ipairs({ 'input', 'result', 'error', 'published' }) do
    bytes = bytes + redis.call('HSTRLEN', run, field)
  end
  local names = redis.call('HKEYS', steps)
  local measured = math.min(#names, MOST_MEASURED)
  local sum = 0
  for i = 1, measured do sum = sum + #names[i] + redis.call('HSTRLEN', steps, names[i]) + STEP_BYTES end
  if measured > 0 then bytes = bytes + math.ceil(sum / measured * #names) end
  return int(bytes)
end
local function dropSize(statuses, member)
  if redis.call('ZREM', statuses .. 'sizes', member) == 0 then return end
  redis.call('HINCRBY', statuses .. 'kept', 'bytes', '-' .. string.match(member, '^%d+'))
end
local function addSize(statuses, run, steps, id)
  -- A worker of an earlier version, which stores no sizes, may have resumed the run.
  local earlier = redis.call('HGET', run, 'size')
  if earlier then dropSize(statuses, earlier .. '/' .. id) end
  local size = sizeOf(run, steps)
  redis.call('HSET', run, 'size', size)
  redis.call('ZADD', statuses .. 'sizes', now, size .. '/' .. id)
  redis.call('HINCRBY', statuses .. 'kept', 'bytes', size)
end
