local time = redis.call('TIME')
local timeUs = time[1] * 1000000 + time[2]
local max, min, ceil, floor = math.max, math.min, math.ceil, math.floor
local function int(number) return string.format('%.0f', number) end

local rules = redis.call('HMGET', limit, 'intervalUs', 'burst', 'concurrency')
if not rules[1] then return { 'unset' } end
local intervalUs, burst, concurrency = tonumber(rules[1]), tonumber(rules[2]), tonumber(rules[3])
local h = redis.call('HMGET', state, 'lastUs', 'skewUs', 'tatUs', 'intervalUs', 'booked')
-- The clock of the limit follows that of Redis, but does not step back.
local nowUs = timeUs - (tonumber(h[2]) or 0)
local lastUs = tonumber(h[1]) or nowUs
if nowUs < lastUs then nowUs = lastUs end
local tatUs, stateIntervalUs, booked = tonumber(h[3]) or 0, tonumber(h[4]) or 0, tonumber(h[5]) or 0

redis.call('ZREMRANGEBYSCORE', slots, '-inf', nowUs)
redis.call('ZREMRANGEBYSCORE', late, '-inf', nowUs)

local function turnOf(name)
  local turn = redis.call('HGET', turns, name)
  if not turn then return 0, false end
  local untilUs, called = string.match(turn, '^(%d+) (%d)$')
  return tonumber(untilUs), called == '1'
end
local function setTurn(name, untilUs, isCalled)
  redis.call('HSET', turns, name, int(untilUs) .. (isCalled and ' 1' or ' 0'))
end
local function leave(name)
  redis.call('ZREM', line, name)
  redis.call('HDEL', turns, name)
  redis.call('ZREM', late, name)
end

-- Moves late waiters out of the head of the queue, so that the others do not wait for them.
local function prune(asking)
  while true do
    local first = redis.call('ZRANGE', line, 0, 0)[1]
    if not first then break end
    if first == asking or turnOf(first) > nowUs then break end
    leave(first)
    redis.call('ZADD', late, int(nowUs + LIMIT.lateUs), first)
  end
  if redis.call('EXISTS', line) == 0 then booked = 0 end
end

-- Returns the waiters to wake: as many as there are free slots, each once.
local function callWaiters()
  local called = {}
  if concurrency == 0 then return called end
  prune('')
  local free = concurrency - redis.call('ZCARD', slots)
  if free <= 0 then return called end
  for _, name in ipairs(redis.call('ZRANGE', line, 0, free - 1)) do
    local _, isCalled = turnOf(name)
    if not isCalled then
      setTurn(name, nowUs + LIMIT.graceUs, true)
      called[#called + 1] = name
    end
  end
  return called
end

local function store()
  redis.call('HSET', state, 'lastUs', int(nowUs), 'skewUs', int(timeUs - nowUs), 'tatUs', int(tatUs), 'intervalUs',
    string.format('%.17g', stateIntervalUs), 'booked', int(booked))
  local keptMs = LIMIT.keptMs + max(0, ceil((tatUs - nowUs) / 1000))
  for _, name in ipairs({ state, slots, line, turns, late }) do redis.call('PEXPIRE', name, int(keptMs)) end
  local nowMs = floor(timeUs / 1000)
  redis.call('ZREMRANGEBYSCORE', keys, '-inf', int(nowMs))
  redis.call('ZADD', keys, int(nowMs + keptMs), key)
  for _, name in ipairs({ limit, keys }) do redis.call('PEXPIRE', name, int(LIMIT.configuredMs)) end
end
