local time = redis.call('TIME')
local timeUs = time[1] * 1000000 + time[2]
local nowMs = math.floor(timeUs / 1000)
local max, min, ceil = math.max, math.min, math.ceil

local h = redis.call('HMGET', state, 'limitRate', 'burst', 'minRate', 'ttlMs', 'maxWaitMs', 'mode', 'generation', 'rate',
  'tatUs', 'lastUs', 'revision', 'limits', 'limitsBy', 'setRate', 'promisedUs', 'skewUs')
local known = h[1]
local function num(i) return tonumber(h[i]) or 0 end
-- The fleet's clock.
local nowUs = max(timeUs - num(16), num(10))
local revision = num(11)

-- Applies limits as text: rate, burst, minRate, ttlMs, maxWaitMs, and those of the breaker. A rate that is given replaces the first of them.
-- After a loss of data, workers may hold promised tokens.
local function setLimits(text, givenRate, afterLoss)
  local parts = {}
  for part in string.gmatch(text, '%S+') do parts[#parts + 1] = tonumber(part) end
  local rate, ttlMs = givenRate or parts[1], parts[4]
  local burst = max(parts[2], ceil(rate * ttlMs / 1000) + 2)
  local size = burst - rate * ttlMs / 1000
  local minRate = min(parts[3], rate)
  redis.call('HSET', state, 'limitRate', rate, 'burst', burst, 'minRate', minRate, 'ttlMs', ttlMs, 'maxWaitMs', parts[5],
    'revision', revision + 1)
  -- Workers of earlier versions give no limits of the breaker.
  redis.call('HSET', state, 'failuresToOpen', parts[6] or BREAKER.consecutive, 'callsToOpen', parts[7] or BREAKER.minCalls,
    'failedShare', parts[8] or BREAKER.failedShare, 'openUs', (parts[9] or BREAKER.openUs / 1000) * 1000,
    'maxOpenUs', (parts[10] or BREAKER.maxOpenUs / 1000) * 1000)
  if not known then
    local promisedUs = afterLoss and nowUs + parts[5] * 1000 or 0
    redis.call('HSET', state, 'mode', 'closed', 'generation', 1, 'rate', rate, 'promisedUs', promisedUs,
      'tatUs', ceil(max(nowUs, promisedUs) + size * 1e6 / rate), 'lastUs', nowUs, 'windowUs', nowUs, 'raisedUs', nowUs)
    return
  end
  local current, to = num(8), num(8)
  -- A rate that was not cut follows the limit; one that is recovering continues from its current value.
  if current >= num(1) or current > rate then to = rate end
  to = max(to, minRate)
  local tatUs = num(9)
  local sinceUs = nowUs
  if to > current then sinceUs = max(nowUs, num(15)) end
  tatUs = ceil(sinceUs + max(0, tatUs - sinceUs) * current / to)
  redis.call('HSET', state, 'rate', to, 'tatUs', tatUs)
end
