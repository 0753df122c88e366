-- Requesters read the weights of the workers' configuration; a Redis that lost them gets them again.
if redis.call('HGET', fair, 'weights') ~= weights then
  for _, field in ipairs(redis.call('HKEYS', fair)) do
    if string.sub(field, 1, 2) == 'w:' then redis.call('HDEL', fair, field) end
  end
  for _, tenant in ipairs(each) do redis.call('HSET', fair, 'w:' .. tenant.name, tenant.weight) end
  redis.call('HSET', fair, 'weights', weights)
end

-- A worker that died between BullMQ's marker and its fetch leaves a job without a marker, which wakes no other worker.
if not redis.call('ZSCORE', bull .. 'marker', '0') then
  local delayed = redis.call('ZRANGE', bull .. 'delayed', 0, 0, 'WITHSCORES')
  local isDue = delayed[2] and tonumber(delayed[2]) / DELAYED_UNIT <= now
  if isDue or redis.call('EXISTS', bull .. 'prioritized', bull .. 'wait') > 0 then redis.call('ZADD', bull .. 'marker', 0, '0') end
end

local due = redis.call('ZRANGEBYSCORE', aging, '-inf', now - ageMs, 'LIMIT', 0, limit)
for _, member in ipairs(due) do
  local key = hashes .. member
  local h = redis.call('HMGET', key, 'owner', 'pending', 'hold', 'nextAt', 'dead', 'woken', 'ask')
  local pending, nextAt = tonumber(h[2]) or 0, tonumber(h[4]) or 0
  local runs = h[1] and h[1] ~= ''
  local backsOff = h[3] and h[3] ~= '' and h[6] ~= '1' and nextAt > now
  local waits = h[5] ~= '1' and (pending > 0 or (not runs and h[3] and h[3] ~= ''))
  local state = readFair(fair, 0, member)
  -- Keys in backoff, or parked behind a running attempt, start to wait after that.
  if waits and (runs or backsOff) then
    redis.call('ZADD', aging, runs and now or nextAt, member)
  else
    redis.call('ZREM', aging, member)
  end
  if waits and not runs and not backsOff then
    local jobId = redis.call('GET', bull .. 'de:' .. member)
    -- At the current place of the queue, before later requests.
    local tag = takeTag(fair, state) - state.cost - CLASS_DISTANCE[2]
    if pending > 0 then
      local ask = readAsk(h[7])
      ask.tag, ask.class = tag, math.min(ask.class, 2)
      redis.call('HSET', key, 'ask', writeAsk(ask))
    end
    if jobId then
      local priority = priorityOf(tag, state.base, 2)
      setPriority(bull, jobId, priority)
      -- Its delay has ended by Redis's clock; by the clock of the worker that delayed it, it may last for hours.
      hasten(bull, jobId, priority)
    end
  end
end
return #due
