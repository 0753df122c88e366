import { defineScript, type Script } from "@konverge/redis";
import { clockLua, GRACE_MS } from "./clock.ts";

/** `order(run, wakes, cancelling, id, text)`: notes a cancellation; the first one counts. Needs clock.ts. */
export const cancelLua: string = String.raw`
local function order(run, wakes, cancelling, id, text)
  if redis.call('HSETNX', run, 'cancel', text) == 0 then return end
  redis.call('HINCRBY', run, 'wakeSeq', 1)
  redis.call('SADD', cancelling, id)
  redis.call('ZADD', wakes, 'LT', now + ${GRACE_MS}, id)
end
`;

/**
 * Orders the cancellation of a run.
 *
 * KEYS: 1 run (hash), 2 wakes (sorted set), 3 cancelling (set).
 * ARGV: 1 id, 2 who and why (JSON).
 * Answer: 'ordered', also when it was ordered before; 'ended'; 'missing'.
 */
export const cancelScript: Script = defineScript(
  "workflow-cancel",
  clockLua +
    cancelLua +
    String.raw`
local status = redis.call('HGET', KEYS[1], 'status')
if not status then return 'missing' end
if ended(status) then return 'ended' end
order(KEYS[1], KEYS[2], KEYS[3], ARGV[1], ARGV[2])
return 'ordered'
`,
);
