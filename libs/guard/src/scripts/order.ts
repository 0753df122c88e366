import { BREAKER } from "@konverge/core";
import { defineScript, type Script } from "@konverge/redis";

/**
 * What changes a guard from outside: the limits of a starting worker, and the orders of people.
 *
 * KEYS: 1 state (hash), 2 live workers, 3 failing workers, 4 transitions.
 * ARGV: 1 channel for transitions, 2 order (configure, setRate, isolate, reset), 3 by, 4 reason; then for configure 5 rate,
 * 6 burst, 7 lowest rate, 8 ttl in ms, 9 longest wait in ms; for setRate 5 the rate, or "" for the configured one again.
 * Answer: { "unset" } when there is nothing to order yet, else { "same" or "changed", revision, limits before as
 * "rate burst minRate ttlMs maxWaitMs" or "", who set them }.
 */
export const orderScript: Script = defineScript(
  "order",
  String.raw`
local time = redis.call('TIME')
local nowUs = time[1] * 1000000 + time[2]
local max, min, ceil = math.max, math.min, math.ceil
local order, by, reason = ARGV[2], ARGV[3], ARGV[4]

local h = redis.call('HMGET', KEYS[1], 'limitRate', 'burst', 'minRate', 'ttlMs', 'maxWaitMs', 'mode', 'generation', 'rate',
  'tatUs', 'lastUs', 'revision', 'limits', 'limitsBy', 'setRate', 'promisedUs')
local known = h[1]
local function num(i) return tonumber(h[i]) or 0 end
nowUs = max(nowUs, num(10))
local revision = num(11)

local function say(from, to)
  local generation = num(7) + 1
  redis.call('HSET', KEYS[1], 'mode', to, 'generation', generation)
  redis.call('LPUSH', KEYS[4], '{"atMs":' .. string.format('%.0f', math.floor(nowUs / 1000)) .. ',"from":"' .. from .. '","to":"' ..
    to .. '","reason":"order","generation":' .. string.format('%.0f', generation) .. ',"by":' .. cjson.encode(by) .. ',"why":' .. cjson.encode(reason) .. '}')
  redis.call('LTRIM', KEYS[4], 0, 49)
  redis.call('PUBLISH', ARGV[1], to .. ' ' .. string.format('%.0f', generation) .. ' 0')
end

local function limit(rate, burst, minRate, ttlMs, maxWaitMs)
  local size = burst - rate * ttlMs / 1000
  minRate = min(minRate, rate)
  redis.call('HSET', KEYS[1], 'limitRate', rate, 'burst', burst, 'minRate', minRate, 'ttlMs', ttlMs, 'maxWaitMs', maxWaitMs,
    'revision', revision + 1)
  if not known then
    redis.call('HSET', KEYS[1], 'mode', 'closed', 'generation', 1, 'rate', rate, 'tatUs', ceil(nowUs + size * 1e6 / rate),
      'lastUs', nowUs, 'windowUs', nowUs, 'raisedUs', nowUs)
    return
  end
  local current, to = num(8), num(8)
  -- A rate that was not cut follows the limit; one that was climbs on from where it is.
  if current >= num(1) or current > rate then to = rate end
  to = max(to, minRate)
  local tatUs = num(9)
  local sinceUs = nowUs
  if to > current then sinceUs = max(nowUs, num(15)) end
  tatUs = ceil(sinceUs + max(0, tatUs - sinceUs) * current / to)
  redis.call('HSET', KEYS[1], 'rate', to, 'tatUs', tatUs)
end

if order == 'configure' then
  local limits = table.concat({ ARGV[5], ARGV[6], ARGV[7], ARGV[8], ARGV[9] }, ' ')
  if known and h[12] == limits then return { 'same', revision, limits, h[13] or '' } end
  redis.call('HSET', KEYS[1], 'limits', limits, 'limitsBy', by)
  local rate = tonumber(ARGV[5])
  -- What a person set stands until a person takes it back.
  if h[14] and h[14] ~= '' then rate = tonumber(h[14]) end
  limit(rate, max(tonumber(ARGV[6]), ceil(rate * tonumber(ARGV[8]) / 1000) + 2), tonumber(ARGV[7]), tonumber(ARGV[8]), tonumber(ARGV[9]))
  return { 'changed', revision + 1, h[12] or '', h[13] or '' }
end
if not known then return { 'unset' } end

if order == 'setRate' then
  redis.call('HSET', KEYS[1], 'setRate', ARGV[5], 'setRateBy', by, 'setRateWhy', reason, 'setRateAtMs', math.floor(nowUs / 1000))
  local rate, configured = tonumber(ARGV[5]), {}
  for part in string.gmatch(h[12], '%S+') do configured[#configured + 1] = tonumber(part) end
  if not rate then rate = configured[1] end
  limit(rate, max(configured[2], ceil(rate * configured[4] / 1000) + 2), configured[3], configured[4], configured[5])
elseif order == 'isolate' then
  redis.call('HSET', KEYS[1], 'isolatedBy', by, 'isolatedWhy', reason, 'isolatedAtMs', math.floor(nowUs / 1000))
  say(h[6], 'isolated')
elseif order == 'reset' then
  local rate = max(num(3), ${BREAKER.restartShare} * num(1))
  local size = num(2) - num(1) * num(4) / 1000
  redis.call('HSET', KEYS[1], 'rate', rate, 'tatUs', ceil(max(nowUs, num(15)) + size * 1e6 / rate), 'closedUs', nowUs, 'untilUs', 0,
    'pausedUntilUs', 0, 'cutUs', nowUs, 'raisedUs', nowUs, 'ticket', '', 'ticketUntilUs', 0, 'openings', 0, 'total', 0,
    'failed', 0, 'slow', 0, 'throttled', 0, 'consecutive', 0, 'strainedUs', 0, 'lastUs', nowUs)
  redis.call('HDEL', KEYS[1], 'isolatedBy', 'isolatedWhy', 'isolatedAtMs')
  redis.call('DEL', KEYS[3])
  say(h[6], 'closed')
end
return { 'changed', revision, h[12] or '', h[13] or '' }
`,
);
