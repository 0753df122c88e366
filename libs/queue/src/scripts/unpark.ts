import { defineScript, type Script } from "@konverge/redis";
import { pauseLua } from "./pause.ts";

/**
 * Takes a step in resuming parked keys: those that nothing pauses any more become due timers, which are requested before
 * they are forgotten. The text `resuming` is until when the process that resumes claims the work, a space, and the last key
 * that was looked at. A key that is parked meanwhile belongs to a pause that still holds, so one pass is enough; another
 * resume begins it anew.
 *
 * KEYS: 1 resuming (text), 2 parked (sorted set), 3 pauses (hash), 4 timers (sorted set). ARGV: 1 most keys to look at, 2
 * claim in ms, or 0 to do nothing while another process claims it.
 * Answer: keys that were resumed, and 1 while there is more to look at.
 */
export const unparkScript: Script = defineScript(
  "unpark",
  pauseLua +
    String.raw`
local resuming, parked, limit = KEYS[1], KEYS[2], tonumber(ARGV[1])
local claimed, cursor = string.match(redis.call('GET', resuming) or '', '^(%d+) (.*)$')
if not claimed then return { 0, 0 } end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
if ARGV[2] == '0' and now < tonumber(claimed) then return { 0, 0 } end
local from = cursor == '' and '-' or '(' .. cursor
local members = redis.call('ZRANGEBYLEX', parked, from, '+', 'LIMIT', 0, limit)
local resumed = 0
for _, member in ipairs(members) do
  if not isPaused(KEYS[3], member) then
    redis.call('ZADD', KEYS[4], 'LT', now, member)
    redis.call('ZREM', parked, member)
    resumed = resumed + 1
  end
end
local more = #members == limit
if more then redis.call('SET', resuming, string.format('%d %s', now + ARGV[2], members[limit])) else redis.call('DEL', resuming) end
return { resumed, more and 1 or 0 }
`,
);
