import { defineScript, type Script } from "@konverge/redis";
import { clockLua, GRACE_MS } from "./clock.ts";
import { forgetLua } from "./run-index.ts";
import { RECHECK_GAP_MS, RECHECK_MS } from "./waits.ts";

/**
 * Finds runs that should have gone on, and forgets in the index those whose time after the end is over.
 *
 * KEYS: 1 wakes, 2 ended, 3 index, 4 rechecks (sorted sets), 5 who rechecks (text that expires).
 * ARGV: 1 most runs to answer and to forget, 2 retention in ms, 3 what the names of the index by status begin with.
 * Answer: ids. Each is answered again after the grace, until somebody has claimed it. Those that wait for objects are answered beside
 * them, by their own time and with their own limit, so that many of them keep nobody else waiting; and by one sweep of the fleet at a
 * time, since each of them is a call of an API server.
 */
export const sweepScript: Script = defineScript(
  "workflow-sweep",
  clockLua +
    forgetLua +
    String.raw`
forget(KEYS[2], KEYS[3], ARGV[3], now - tonumber(ARGV[2]), ARGV[1])
local due = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now, 'LIMIT', 0, ARGV[1])
for _, id in ipairs(due) do redis.call('ZADD', KEYS[1], now + ${GRACE_MS}, id) end
local waiting = redis.call('ZRANGEBYSCORE', KEYS[4], '-inf', now, 'LIMIT', 0, ARGV[1])
if #waiting > 0 and redis.call('SET', KEYS[5], '1', 'NX', 'PX', ${RECHECK_GAP_MS}) then
  for _, id in ipairs(waiting) do
    redis.call('ZADD', KEYS[4], now + ${RECHECK_MS}, id)
    due[#due + 1] = id
  end
end
return due
`,
);
