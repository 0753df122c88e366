import { defineScript, type Script } from "@konverge/redis";
import { clockLua } from "./clock.ts";

/**
 * Notes that a process looks at a schedule, and answers up to when its times are dealt with: at first sight up to now.
 *
 * KEYS: 1 schedules (hash).
 * ARGV: 1 field, 2 name, 3 times (text), 4 workflow, 5 now, 6 next time, both ms.
 */
export const lookAtScheduleScript: Script = defineScript(
  "workflow-schedule-look",
  clockLua +
    String.raw`
local text = redis.call('HGET', KEYS[1], ARGV[1])
local entry = text and cjson.decode(text) or { name = ARGV[2], times = ARGV[3], doneMs = tonumber(ARGV[5]) }
entry.workflow, entry.seenMs, entry.nextMs = ARGV[4], tonumber(ARGV[5]), tonumber(ARGV[6])
redis.call('HSET', KEYS[1], ARGV[1], cjson.encode(entry))
return int(entry.doneMs)
`,
);

/**
 * Notes that a time is dealt with.
 *
 * KEYS: 1 schedules (hash).
 * ARGV: 1 field, 2 the time in ms, 3 id of the run that stands for it.
 */
export const passScheduleScript: Script = defineScript(
  "workflow-schedule-pass",
  String.raw`
local text = redis.call('HGET', KEYS[1], ARGV[1])
if not text then return 0 end
local entry = cjson.decode(text)
if entry.doneMs >= tonumber(ARGV[2]) then return 0 end
entry.doneMs, entry.run = tonumber(ARGV[2]), ARGV[3]
redis.call('HSET', KEYS[1], ARGV[1], cjson.encode(entry))
return 1
`,
);
