if not known then return 'unset' end

local function moveTo(mode)
  local generation = num(7) + 1
  redis.call('HSET', state, 'mode', mode, 'generation', generation)
  redis.call('LPUSH', transitions, '{"atMs":' .. string.format('%.0f', nowMs) .. ',"from":"' .. h[6] ..
    '","to":"' .. mode .. '","reason":"operatorAction","generation":' .. string.format('%.0f', generation) .. ',"by":' ..
    cjson.encode(by) .. ',"operatorReason":' .. cjson.encode(reason) .. '}')
  redis.call('LTRIM', transitions, 0, 49)
  redis.call('PUBLISH', channel, mode .. ' ' .. string.format('%.0f', generation) .. ' 0')
end

if action == 'setRate' then
  redis.call('HSET', state, 'setRate', rate, 'setRateBy', by, 'setRateWhy', reason, 'setRateAtMs', nowMs)
  setLimits(h[12], tonumber(rate))
  redis.call('PUBLISH', channel, 'limits')
elseif action == 'isolate' then
  redis.call('HSET', state, 'isolatedBy', by, 'isolatedWhy', reason, 'isolatedAtMs', nowMs)
  moveTo('isolated')
elseif action == 'reset' then
  local restart = max(num(3), BREAKER.restartShare * num(1))
  local size = num(2) - num(1) * num(4) / 1000
  redis.call('HSET', state, 'rate', restart, 'tatUs', ceil(max(nowUs, num(15)) + size * 1e6 / restart), 'closedUs', nowUs,
    'untilUs', 0, 'pausedUntilUs', 0, 'cutUs', nowUs, 'raisedUs', nowUs, 'ticket', '', 'ticketUntilUs', 0, 'openings', 0,
    'total', 0, 'failed', 0, 'slow', 0, 'throttled', 0, 'consecutive', 0, 'strainedUs', 0, 'outageSeenMs', 0, 'lastUs', nowUs)
  redis.call('HDEL', state, 'isolatedBy', 'isolatedWhy', 'isolatedAtMs')
  redis.call('DEL', failingWorkers)
  moveTo('closed')
end
return 'changed'
