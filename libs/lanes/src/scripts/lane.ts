import { defineScript, type Script } from "@konverge/redis";

/**
 * Asks for the lane of an object, prolongs it, or comes back for one that was handed over.
 *
 * KEYS: 1 lane (hash), 2 processes that wait (list, first come first served).
 * ARGV: 1 process, 2 hold in ms, 3 longest age of the carry in ms, 4 "take" or "renew", 5 longest age in ms where strangers
 * write as well, 6 for how long in ms a stranger is remembered.
 * Answer: { "held", carry or "", its age in ms }, { "wait", ms until the holder's time is up }, or { "lost" } for a
 * renewal that came too late.
 */
export const takeLaneScript: Script = defineScript(
  "take-lane",
  String.raw`
local time = redis.call('TIME')
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
local process, holdMs, mode = ARGV[1], tonumber(ARGV[2]), ARGV[4]
local h = redis.call('HMGET', KEYS[1], 'holder', 'untilMs', 'carry', 'carryAtMs', 'strangerAtMs')
local holder, untilMs = h[1] or '', tonumber(h[2]) or 0

if mode == 'renew' and holder ~= process then return { 'lost' } end
if holder ~= '' and holder ~= process and untilMs > nowMs then
  if not redis.call('LPOS', KEYS[2], process) then redis.call('RPUSH', KEYS[2], process) end
  redis.call('PEXPIRE', KEYS[2], 10 * holdMs)
  return { 'wait', untilMs - nowMs }
end
redis.call('HSET', KEYS[1], 'holder', process, 'untilMs', nowMs + holdMs)
redis.call('PEXPIRE', KEYS[1], 10 * holdMs)
if mode == 'renew' then return { 'held', '', 0 } end
redis.call('LREM', KEYS[2], 0, process)
local ageMs = nowMs - (tonumber(h[4]) or 0)
local longestMs = tonumber(ARGV[3])
if nowMs - (tonumber(h[5]) or 0) < tonumber(ARGV[6]) then longestMs = tonumber(ARGV[5]) end
if not h[3] or ageMs > longestMs then return { 'held', '', 0 } end
return { 'held', h[3], ageMs }
`,
);

/**
 * Leaves a lane to the next process that waits, and wakes it. Who lost the lane meanwhile changes nothing.
 *
 * KEYS: 1 lane (hash), 2 processes that wait (list). ARGV: 1 process, 2 hold in ms, 3 carry or "", 4 its age in ms, 5 the
 * channels' root, 6 what to say there, 7 "1" when a stranger was seen to write the object.
 * Answer: 1 left, 0 it was another's already.
 */
export const leaveLaneScript: Script = defineScript(
  "leave-lane",
  String.raw`
local time = redis.call('TIME')
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
local process, holdMs, carry = ARGV[1], tonumber(ARGV[2]), ARGV[3]
if redis.call('HGET', KEYS[1], 'holder') ~= process then return 0 end
if carry == '' then
  redis.call('HDEL', KEYS[1], 'carry', 'carryAtMs')
else
  redis.call('HSET', KEYS[1], 'carry', carry, 'carryAtMs', nowMs - tonumber(ARGV[4]))
end
if ARGV[7] == '1' then redis.call('HSET', KEYS[1], 'strangerAtMs', nowMs) end
local nextProcess = redis.call('LPOP', KEYS[2])
if nextProcess then
  redis.call('HSET', KEYS[1], 'holder', nextProcess, 'untilMs', nowMs + holdMs)
  redis.call('PUBLISH', ARGV[5] .. nextProcess, ARGV[6])
  redis.call('PEXPIRE', KEYS[1], 10 * holdMs)
else
  redis.call('HSET', KEYS[1], 'holder', '', 'untilMs', 0)
  redis.call('PEXPIRE', KEYS[1], 5 * holdMs)
end
return 1
`,
);
