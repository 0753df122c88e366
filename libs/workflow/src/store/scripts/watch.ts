import { defineScript, type Script } from "@konverge/redis";
import { clockLua } from "./clock.ts";
import { RECHECK_MS, waitsLua } from "./waits.ts";

/**
 * Notes objects that a run waits for, before it looks at them: a change behind that look finds the run in the index.
 *
 * KEYS: 1 run (hash), 2 kinds waited for (set), 3 rechecks (sorted set).
 * ARGV: 1 epoch, 2 workflow and id of the run, 3 id, 4 what the names of the indexes begin with, 5 the objects, parted by spaces.
 * Answer: 'watched', or 'fenced': nothing was changed.
 */
export const watchScript: Script = defineScript(
  "workflow-watch",
  clockLua +
    waitsLua +
    String.raw`
local h = redis.call('HMGET', KEYS[1], 'epoch', 'watched')
if h[1] ~= ARGV[1] then return 'fenced' end
local known, watched = {}, h[2] or ''
for object in string.gmatch(watched, '%S+') do known[object] = true end
for object in string.gmatch(ARGV[5], '%S+') do
  if not known[object] then
    known[object] = true
    watched = watched == '' and object or watched .. ' ' .. object
    enterWait(ARGV[4], KEYS[2], object, ARGV[2])
  end
end
redis.call('HSET', KEYS[1], 'watched', watched)
redis.call('ZADD', KEYS[3], now + ${RECHECK_MS}, ARGV[3])
return 'watched'
`,
);
