import { defineScript, type Script } from "@konverge/redis";

/**
 * Asks whether a key is paused, as Lua that other scripts include. The hash `pauses` has a field per scope (pause-scope.ts):
 * `*` for all keys, `n/<namespace>` and `k/<key>`.
 */
export const pauseLua: string = String.raw`
local function isPaused(pauses, member)
  local namespace = string.match(member, '^[^/]*/[^/]*/[^/]*/([^/]*)/') or '_'
  local h = redis.call('HMGET', pauses, '*', 'n/' .. namespace, 'k/' .. member)
  return h[1] or h[2] or h[3]
end
`;

/** A note (JSON object) gets the time of Redis, since the clocks of people's machines differ. */
export const noteLua: string = String.raw`
local ACTIONS_KEPT = 200
local function noteAt(note, now) return '{"atMs":' .. now .. ',' .. string.sub(note, 2) end
local function logAction(orders, note)
  redis.call('LPUSH', orders, note)
  redis.call('LTRIM', orders, 0, ACTIONS_KEPT - 1)
end
`;

/**
 * Pauses a scope. A pause of the same scope is replaced.
 *
 * KEYS: 1 pauses (hash), 2 orders (list). ARGV: 1 field of the scope, 2 note, 3 order (JSON objects).
 * Answer: 1 new, 0 replaced.
 */
export const pauseScript: Script = defineScript(
  "pause",
  noteLua +
    String.raw`
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
logAction(KEYS[2], noteAt(ARGV[3], now))
return redis.call('HSET', KEYS[1], ARGV[1], noteAt(ARGV[2], now))
`,
);

/**
 * Ends a pause. From here on the keys that are parked are being resumed (unpark.ts): by this process, and when it says
 * nothing for the time of its claim, by any worker.
 *
 * KEYS: 1 pauses (hash), 2 orders (list), 3 parked (sorted set), 4 resuming (text). ARGV: 1 field of the scope, 2 order
 * (JSON object), 3 claim in ms.
 * Answer: 1, or 0 when the scope was not paused.
 */
export const resumeScript: Script = defineScript(
  "resume",
  noteLua +
    String.raw`
if redis.call('HDEL', KEYS[1], ARGV[1]) == 0 then return 0 end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
logAction(KEYS[2], noteAt(ARGV[2], now))
if redis.call('EXISTS', KEYS[3]) == 1 then redis.call('SET', KEYS[4], string.format('%d ', now + ARGV[3])) end
return 1
`,
);

/**
 * Keeps an order that consists of several commands. KEYS: 1 orders (list). ARGV: 1 order (JSON object). Answer: 1.
 */
export const logActionScript: Script = defineScript(
  "log-action",
  noteLua +
    String.raw`
local time = redis.call('TIME')
logAction(KEYS[1], noteAt(ARGV[1], time[1] * 1000 + math.floor(time[2] / 1000)))
return 1
`,
);
