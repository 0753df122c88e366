local MEND_MS = 3600000
local h = redis.call('HMGET', fair, 'v', 'base', 'next', 'rebasedAt')
local v, base, goal = tonumber(h[1]) or 0, tonumber(h[2]) or 0, tonumber(h[3])
local prioritized = bull .. 'prioritized'

-- The priority of a waiting job, counted from "from"; nil for a foreign job.
local function shouldBe(jobId, from)
  local member = redis.call('HGET', bull .. jobId, 'deid')
  if not member then return nil end
  local k = redis.call('HMGET', hashes .. member, 'pending', 'ask', 'retryTag')
  if (tonumber(k[1]) or 0) == 0 then return priorityOf(tonumber(k[3]) or 0, from, 3) end
  local ask = readAsk(k[2])
  return priorityOf(ask.tag, from, ask.class)
end

-- A flow that the queue has passed gets the same next tag with and without its field.
if redis.call('HLEN', fair) > FLOWS_KEPT then
  local page = redis.call('HSCAN', fair, redis.call('HGET', fair, 'sweptTo') or '0', 'COUNT', FLOWS_KEPT)
  local passed = {}
  for i = 1, #page[2], 2 do
    if string.find(page[2][i], '^%d+:') and tonumber(page[2][i + 1]) <= v then passed[#passed + 1] = page[2][i] end
  end
  if #passed > 0 then redis.call('HDEL', fair, unpack(passed)) end
  redis.call('HSET', fair, 'sweptTo', page[1])
end
if not goal then
  if v - base > after then
    goal = math.floor(v) - CLASS_DISTANCE[4]
    redis.call('HSET', fair, 'next', goal)
  end
end
if goal then
  -- Moved jobs are below the distance by which the base moves, the others above it.
  local jobs = redis.call('ZRANGEBYSCORE', prioritized, string.format('%.0f', (goal - base) * PRIORITY_UNIT), '+inf',
    'LIMIT', 0, limit)
  local moved = 0
  for _, jobId in ipairs(jobs) do
    local priority = shouldBe(jobId, goal)
    if priority then
      setPriority(bull, jobId, priority)
      if priority < goal - base then moved = moved + 1 end
    end
  end
  if #jobs == limit and moved > 0 then return 1 end
  redis.call('HDEL', fair, 'next')
  redis.call('HSET', fair, 'base', goal, 'rebasedAt', now)
  return 1
end
if now - (tonumber(h[4]) or -MEND_MS) < MEND_MS then
  local mended = 0
  for _, jobId in ipairs(redis.call('ZREVRANGE', prioritized, 0, limit - 1)) do
    local priority = shouldBe(jobId, base)
    if priority and priority < tonumber(redis.call('HGET', bull .. jobId, 'priority') or 0) then
      setPriority(bull, jobId, priority)
      mended = mended + 1
    end
  end
  return mended > 0 and 1 or 0
end
return 0
