local time = redis.call('TIME')
local timeUs = time[1] * 1000000 + time[2]
local max, min, ceil, floor = math.max, math.min, math.ceil, math.floor

local h = redis.call('HMGET', state, 'limitRate', 'burst', 'minRate', 'ttlMs', 'maxWaitMs', 'mode', 'generation',
  'tatUs', 'rate', 'lastUs', 'runId', 'pausedUntilUs', 'cutUs', 'raisedUs', 'untilUs', 'ticket', 'ticketUntilUs',
  'closedUs', 'openings', 'revision', 'promisedUs', 'booked1', 'booked2', 'booked3', 'skewUs',
  'failuresToOpen', 'callsToOpen', 'failedShare', 'openUs', 'maxOpenUs', 'total', 'failed', 'slow', 'throttled', 'windowUs',
  'consecutive', 'strainedUs', 'seriesMs', 'outageSeenMs')
if not h[1] then return { 'unset' } end
local function num(i) return tonumber(h[i]) or 0 end
local limitRate, burst, minRate, ttlMs, maxWaitMs = num(1), num(2), num(3), num(4), num(5)
local size = burst - limitRate * ttlMs / 1000
local mode, generation, tatUs, rate, lastUs = h[6], num(7), num(8), num(9), num(10)
-- Limits that a worker of an earlier version stored have none of the breaker.
local failuresToOpen = tonumber(h[26]) or BREAKER.consecutive
local callsToOpen = tonumber(h[27]) or BREAKER.minCalls
local failedShare = tonumber(h[28]) or BREAKER.failedShare
local openUs, maxOpenUs = tonumber(h[29]) or BREAKER.openUs, tonumber(h[30]) or BREAKER.maxOpenUs
local runId, pausedUntilUs, cutUs, raisedUs, untilUs = h[11] or '', num(12), num(13), num(14), num(15)
local ticket, ticketUntilUs, closedUs, openings, promisedUs = h[16] or '', num(17), num(18), num(19), num(21)

local set = {}
local function put(field, value)
  set[#set + 1] = field
  set[#set + 1] = value
end
-- Empty, also when the last promised token is due.
local function emptied(at, r) return ceil(max(at, promisedUs) + size * 1e6 / r) end

-- The fleet's clock follows that of Redis, but does not step back, and does not pass by more than the worker's own clock did.
local mostUs = math.huge
if answeredUs > 0 then mostUs = answeredUs + elapsedUs + BREAKER.clockSlackUs end
local nowUs = max(lastUs, min(timeUs - num(25), mostUs))
lastUs = nowUs
put('skewUs', timeUs - nowUs)

-- After a failover, grants may be lost.
if askRunId ~= '' and askRunId ~= runId then
  if runId ~= '' then tatUs = max(tatUs, emptied(nowUs, rate)) end
  runId = askRunId
  put('runId', runId)
end
-- Redis lost transitions that a worker has seen, and possibly grants. The next generation voids all leases.
if reported > generation then
  generation = reported + 1
  tatUs = max(tatUs, emptied(nowUs, rate))
  put('generation', generation)
end

local transition = ''
local function moved(to, reason, evidence)
  transition = '{"atMs":' .. string.format('%.0f', floor(timeUs / 1000)) .. ',"from":"' .. mode .. '","to":"' .. to ..
    '","reason":"' .. reason .. '","generation":' .. (generation + 1) .. ',"worker":' .. cjson.encode(worker) .. evidence .. '}'
  mode = to
  generation = generation + 1
end
-- Only readers use these fields: since when the server fails, the last sign of it, and the last error.
local wallMs = floor(timeUs / 1000)
local function noteOutage(sinceMs, seenMs)
  if wallMs - seenMs > BREAKER.outageCalmMs then put('outageMs', string.format('%.0f', sinceMs)) end
  put('outageSeenMs', string.format('%.0f', wallMs))
end
-- Numbers of live workers and of workers with failures; nil until counted.
local live, failingNow
local function clearCounts()
  put('total', 0)
  put('failed', 0)
  put('slow', 0)
  put('throttled', 0)
  put('consecutive', 0)
  put('strainedUs', 0)
  redis.call('DEL', failingWorkers)
  failingNow = 0
end
local function open(reason, evidence)
  if mode == 'halfOpen' or nowUs - closedUs < BREAKER.calmUs then openings = openings + 1 else openings = 1 end
  local base = min(maxOpenUs, openUs * 2 ^ (openings - 1))
  -- Workers without this update may still use promised tokens: the probe starts one token after the last of them.
  local tokenUs = min(maxOpenUs, ceil(1e6 / limitRate))
  local forUs = max(retryAfterUs, floor(base * (0.75 + 0.5 * random)), promisedUs + tokenUs - nowUs)
  moved('open', reason, evidence .. ',"openMs":' .. string.format('%.0f', floor(forUs / 1000)))
  untilUs = nowUs + forUs
  ticket, ticketUntilUs = '', 0
  redis.call('DEL', order, turns)
  clearCounts()
end

local reports = mode == 'closed' and reported == generation and ok + failed + throttled + late > 0
if reports or (mode == 'closed' and want > 0) then redis.call('ZADD', liveWorkers, nowUs, worker) end
if reports then
  local startUs = nowUs - BREAKER.quorumUs
  redis.call('ZREMRANGEBYSCORE', liveWorkers, '-inf', startUs)
  live = redis.call('ZCARD', liveWorkers)
  if failed > 0 then redis.call('ZADD', failingWorkers, nowUs, worker) end
  failingNow = redis.call('ZCARD', failingWorkers)
  if failingNow > 0 then
    local failedUs = failed == 0 and ok > 0 and tonumber(redis.call('ZSCORE', failingWorkers, worker))
    if failedUs and failedUs <= nowUs - BREAKER.failingUs then redis.call('ZREM', failingWorkers, worker) end
    redis.call('ZREMRANGEBYSCORE', failingWorkers, '-inf', startUs)
    failingNow = redis.call('ZCARD', failingWorkers)
  end
  -- Workers with a network failure of their own must not decide for the fleet.
  local hasQuorum = 2 * failingNow > live
  local w = {}
  for i = 1, 9 do w[i] = num(30 + i) end
  local left = max(0, 1 - (nowUs - w[5]) / BREAKER.windowUs)
  local total, failing = w[1] * left + (ok + failed + late), w[2] * left + failed
  local slowly, refused = w[3] * left + slow, w[4] * left + throttled
  local consecutive, strainedUs = w[6] + failed, w[7]
  if ok > 0 then consecutive = trailing end

  -- The adaptive rate falls immediately.
  local isFailing = failed > 0 and failing >= BREAKER.cutFailedShare * total and hasQuorum
  local isSlow = slow > 0 and slowly >= BREAKER.slowShare * total
  if (throttled > 0 or isFailing or isSlow) and nowUs - cutUs >= max(BREAKER.cutEveryUs, retryAfterUs) then
    local to = max(minRate, BREAKER.cutFactor * rate)
    -- A cut keeps the debt in tokens, or it would create tokens.
    tatUs = ceil(nowUs + max(0, tatUs - nowUs) * rate / to)
    rate, cutUs, raisedUs = to, nowUs, nowUs
  end
  if throttled > 0 then
    pausedUntilUs = max(pausedUntilUs, nowUs + retryAfterUs)
    -- Calls that waited during a pause must not start together after it.
    tatUs = max(tatUs, emptied(pausedUntilUs, rate))
  end
  if rate <= minRate and refused >= BREAKER.strainedShare * (total + refused) then
    if strainedUs == 0 then strainedUs = nowUs end
  else
    strainedUs = 0
  end

  local reason
  if consecutive >= failuresToOpen then reason = 'consecutive'
  elseif total >= callsToOpen and failing >= failedShare * total then reason = 'failedShare'
  elseif total >= callsToOpen and slowly >= BREAKER.slowShare * total and failing >= BREAKER.slowFailedShare * total then
    reason = 'slow'
  elseif strainedUs > 0 and nowUs - strainedUs >= BREAKER.strainedUs then reason = 'strained' end
  if reason then
    -- A 429 applies to all workers.
    if reason == 'strained' or hasQuorum then
      open(reason, ',"calls":' .. floor(total + 0.5) .. ',"failed":' .. floor(failing + 0.5) .. ',"slow":' .. floor(slowly + 0.5) ..
        ',"throttled":' .. floor(refused + 0.5) .. ',"consecutive":' .. consecutive .. ',"failingWorkers":' .. failingNow ..
        ',"liveWorkers":' .. live)
    end
  end
  if failed + throttled > 0 then
    local seriesMs = w[8]
    if w[6] == 0 or seriesMs == 0 then seriesMs = wallMs end
    put('seriesMs', string.format('%.0f', seriesMs))
    if failure ~= '' then put('failure', failure) end
    if mode ~= 'closed' or consecutive >= BREAKER.outageFailures or (isFailing and failing >= BREAKER.outageFailures) then
      noteOutage(seriesMs, w[9])
    end
  end
  if mode == 'closed' then
    put('total', total)
    put('failed', failing)
    put('slow', slowly)
    put('throttled', refused)
    put('windowUs', nowUs)
    put('consecutive', consecutive)
    put('strainedUs', strainedUs)
  else
    put('windowUs', nowUs)
  end
elseif mode == 'halfOpen' and askTicket ~= '' and askTicket == ticket and nowUs < ticketUntilUs then
  -- An inconclusive probe must not start the next one immediately.
  ticket, ticketUntilUs = '', nowUs + max(openUs, retryAfterUs)
  put('outageSeenMs', string.format('%.0f', wallMs))
  if failure ~= '' then put('failure', failure) end
  if verdict == 'failed' then
    open('probe', '')
  elseif verdict == 'ok' then
    moved('closed', 'probe', '')
    closedUs, untilUs, pausedUntilUs, ticketUntilUs = nowUs, 0, 0, 0
    rate = max(minRate, BREAKER.restartShare * limitRate)
    tatUs = emptied(nowUs, rate)
    cutUs, raisedUs = nowUs, nowUs
    clearCounts()
  end
end
if mode == 'open' and nowUs >= untilUs then
  moved('halfOpen', 'timer', '')
  ticket, ticketUntilUs = '', 0
end

-- The rate rises gradually, only while it limits the work.
local function raiseRate(isLimited)
  if rate >= limitRate then return end
  if nowUs - cutUs < BREAKER.cutEveryUs or not isLimited then
    raisedUs = nowUs
  elseif reported == generation and ok + late > 0 and failed + throttled == 0 then
    local to = min(limitRate, rate + BREAKER.raiseShare * limitRate * min(1e6, nowUs - raisedUs) / 1e6)
    -- The same number of tokens, from the last promised one on.
    local sinceUs = max(nowUs, promisedUs)
    if to > rate then tatUs = ceil(sinceUs + max(0, tatUs - sinceUs) * rate / to) end
    rate, raisedUs = to, nowUs
  end
end
-- The time in which tokens become due while the rate is restored; with the current rate, workers would return too late to use it.
local function restoringUs(tokens)
  local raise = BREAKER.raiseShare * limitRate
  local restoredS = (limitRate - rate) / raise
  local restoring = (rate + limitRate) / 2 * restoredS
  if tokens >= restoring then return ceil((restoredS + (tokens - restoring) / limitRate) * 1e6) end
  return ceil((math.sqrt(rate * rate + 2 * raise * max(0, tokens)) - rate) / raise * 1e6)
end

local granted, waitUs, turnUs, handed = 0, 0, 0, ''
live = live or redis.call('ZCARD', liveWorkers)
if mode == 'isolated' then waitUs = BREAKER.isolatedUs
elseif mode == 'open' then waitUs = untilUs - nowUs
elseif mode == 'halfOpen' then
  if nowUs < ticketUntilUs then waitUs = ticketUntilUs - nowUs
  elseif probe == '' then waitUs = openUs
  else
    ticket, ticketUntilUs = probe, nowUs + BREAKER.ticketUs
    granted, handed = 1, probe
    tatUs = ceil(max(tatUs, nowUs) + 1e6 / rate)
  end
elseif want > 0 then
  if nowUs < pausedUntilUs then
    waitUs = pausedUntilUs - nowUs
  else
    want = max(need, min(want, MAX_LEASE))
    -- One worker must not hold usable tokens that others need.
    local most = max(need, min(want, ceil(2 * burst / max(1, live))))
    local booked = { num(22), num(23), num(24) }
    local takesTurn = rank > 0 and turn ~= 'none'
    local waiting = redis.call('ZCARD', order)
    local place, ahead, others = nil, 0, 0
    if waiting > 0 then
      place = ownPlace(takesTurn)
      if rank > 0 then ahead = tokensAhead(place, booked, nowUs) end
      others = redis.call('ZCARD', order)
      if redis.call('ZSCORE', order, worker) then others = others - 1 end
    end
    local intervalUs = 1e6 / rate
    -- An idle bucket does not exceed its capacity.
    tatUs = max(tatUs, nowUs)
    local kept = share * size
    local level = (nowUs + size * intervalUs - tatUs) / intervalUs - kept
    local horizonUs = maxWaitMs * 1000
    if rank > 0 then horizonUs = horizonUs * ORDER.ordinaryShare end
    -- At most the lifetime of a token, so that workers alternate; and a promise must fit the bucket.
    local stretch = max(need, floor(ttlMs * 1000 / intervalUs))
    local amount = min(want, stretch, floor(size - kept))
    if level >= max(need, ORDER.idleShare * size) then
      granted = min(most, floor(level))
    elseif level - ahead >= need then
      granted = min(most, floor(level - ahead))
      if others > 0 then granted = min(granted, stretch) end
    elseif amount >= need and ceil((amount - level) * intervalUs) + ceil(ahead * intervalUs) <= horizonUs then
      granted, waitUs = amount, max(0, ceil((amount - level) * intervalUs))
    end
    local function timeUntil(tokens)
      return min(ORDER.longestUs, max(1000, restoringUs(tokens + amount - level) - floor(horizonUs * ORDER.earlyShare)))
    end
    local function book(untilUs)
      if not place then
        if redis.call('ZCARD', order) == 0 then
          for each = 1, 3 do
            booked[each] = 0
            put('booked' .. each, 0)
          end
        end
        redis.call('ZADD', order, string.format('%.0f', baseOf(rank) + booked[rank]), worker)
        put('booked' .. rank, booked[rank] + amount)
      end
      redis.call('HSET', turns, worker, string.format('%.0f', untilUs + ORDER.graceUs))
    end
    if granted > 0 then
      tatUs = ceil(tatUs + granted * intervalUs)
      promisedUs = max(promisedUs, nowUs + waitUs)
      level = level - granted
      if place and takesTurn then
        place = nil
        redis.call('ZREM', order, worker)
        redis.call('HDEL', turns, worker)
      end
      if takesTurn and others > 0 and (want > granted or turn == 'again') then
        turnUs = timeUntil(tokensAhead(nil, booked, nowUs))
        book(nowUs + turnUs)
      end
    else
      waitUs = timeUntil(ahead)
      if takesTurn then
        turnUs = waitUs
        book(nowUs + waitUs)
      end
    end
    raiseRate(granted < most or waitUs > 0)
  end
elseif nowUs >= pausedUntilUs and redis.call('ZCARD', order) > 0 then
  -- A report without a request: the rate limits the workers that wait for their turn.
  raiseRate(true)
end

put('lastUs', lastUs)
put('tatUs', tatUs)
put('promisedUs', promisedUs)
put('rate', rate)
put('raisedUs', raisedUs)
put('cutUs', cutUs)
put('pausedUntilUs', pausedUntilUs)
if transition ~= '' or handed ~= '' or askTicket ~= '' then
  put('mode', mode)
  put('generation', generation)
  put('untilUs', untilUs)
  put('ticket', ticket)
  put('ticketUntilUs', ticketUntilUs)
  put('closedUs', closedUs)
  put('openings', openings)
end
redis.call('HSET', state, unpack(set))
if transition ~= '' then
  redis.call('LPUSH', transitions, transition)
  redis.call('LTRIM', transitions, 0, 49)
  redis.call('PUBLISH', channel, mode .. ' ' .. string.format('%.0f', generation) .. ' ' .. string.format('%.0f', max(0, untilUs - nowUs)))
end
failingNow = failingNow or redis.call('ZCOUNT', failingWorkers, '(' .. string.format('%.0f', nowUs - BREAKER.quorumUs), '+inf')
local reportsSoon = (rate < limitRate or failingNow > 0) and 1 or 0
return { mode, nowUs, generation, granted, waitUs, turnUs, handed, floor(rate * 1000), ttlMs, live, reportsSoon, num(20), transition }
