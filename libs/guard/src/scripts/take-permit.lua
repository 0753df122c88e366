-- The rules of core's `askPermit`; test/integration/guard/limit-model.test.ts compares the two.
prune(waiter)
if stateIntervalUs ~= intervalUs then
  -- A changed rate keeps the debt in tokens.
  local tokens = stateIntervalUs == 0 and 0 or max(0, tatUs - nowUs) / stateIntervalUs
  tatUs, stateIntervalUs = ceil(nowUs + tokens * intervalUs), intervalUs
end
-- The request was repeated, because the connection broke before its answer.
if redis.call('ZSCORE', slots, holder) then
  local called = callWaiters()
  store()
  return { 'granted', concurrency > 0 and 1 or 0, called }
end
-- After a change of the burst, a request must not wait forever.
if intervalUs > 0 then cost = min(cost, burst) end
local own = tonumber(redis.call('ZSCORE', line, waiter))
local waiting = redis.call('ZCARD', line)
local first = tonumber(redis.call('ZRANGE', line, 0, 0, 'WITHSCORES')[2]) or booked
local isLate = not own and redis.call('ZSCORE', late, waiter)
local place, ahead, count = own or booked, 0, waiting
if isLate then
  place, count = first - cost, 0
else
  ahead = place - first
  if own then count = redis.call('ZRANK', line, waiter) end
end
local held = redis.call('ZCARD', slots)
local free = concurrency == 0 and math.huge or concurrency - held
local roomUs = burst * intervalUs - max(0, tatUs - nowUs)
local tokenWaitUs = intervalUs == 0 and 0 or max(0, ceil((ahead + cost) * intervalUs - roomUs))
local slotWaitUs = 0
if count >= free then
  -- A freed slot calls the next waiter earlier.
  local behind = count - free
  if held == 0 then
    slotWaitUs = LIMIT.leaseUs
  else
    local last = min(behind, held - 1)
    local endUs = tonumber(redis.call('ZRANGE', slots, last, last, 'WITHSCORES')[2])
    slotWaitUs = endUs - nowUs + floor(behind / held) * LIMIT.leaseUs
  end
end

local answer
if count < free and tokenWaitUs == 0 then
  if intervalUs > 0 then tatUs = ceil(max(tatUs, nowUs) + cost * intervalUs) end
  if concurrency > 0 then redis.call('ZADD', slots, int(nowUs + LIMIT.leaseUs), holder) end
  leave(waiter)
  redis.call('HINCRBY', limit, 'granted', 1)
  answer = { 'granted', concurrency > 0 and 1 or 0 }
else
  local waitUs = min(LIMIT.longestWaitUs, max(LIMIT.leastWaitUs, tokenWaitUs, slotWaitUs))
  if not own then
    if not isLate then booked = booked + cost end
    redis.call('ZREM', late, waiter)
    redis.call('ZADD', line, int(place), waiter)
    redis.call('HINCRBY', limit, 'deferred', 1)
  end
  -- The place of a caller that has died in its wait is soon free.
  local againUs = waitUs <= inPlaceUs and min(waitUs, LIMIT.pollUs) or waitUs
  setTurn(waiter, nowUs + againUs + LIMIT.graceUs, slotWaitUs == 0)
  answer = { 'wait', waitUs }
end
answer[3] = callWaiters()
store()
return answer
