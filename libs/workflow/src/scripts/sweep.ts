import { defineScript, type Script } from "@konverge/redis";
import { clockLua, GRACE_MS } from "./clock.ts";

/**
 * Finds runs that should have gone on, and forgets in the index those whose time after the end is over.
 *
 * KEYS: 1 wakes, 2 ended, 3 index (sorted sets).
 * ARGV: 1 most runs to answer and to forget, 2 retention in ms.
 * Answer: ids. Each is answered again after the grace, until somebody has claimed it.
 */
export const sweepScript: Script = defineScript(
  "workflow-sweep",
  clockLua +
    String.raw`
for _, id in ipairs(redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now - tonumber(ARGV[2]), 'LIMIT', 0, ARGV[1])) do
  redis.call('ZREM', KEYS[2], id)
  redis.call('ZREM', KEYS[3], id)
end
local due = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now, 'LIMIT', 0, ARGV[1])
for _, id in ipairs(due) do redis.call('ZADD', KEYS[1], now + ${GRACE_MS}, id) end
return due
`,
);
