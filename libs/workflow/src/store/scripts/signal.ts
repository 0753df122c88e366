import { defineScript, type Script } from "@konverge/redis";
import { clockLua, GRACE_MS } from "./clock.ts";

/**
 * Buffers a signal for a run that has not ended. Its id keeps it from being stored twice.
 *
 * KEYS: 1 run (hash), 2 signals (list), 3 seen signals (set), 4 wakes (sorted set).
 * ARGV: 1 id of the run, 2 id of the signal, 3 signal (a JSON object that is not empty), 4 most signals to buffer.
 * Answer: 'stored', 'duplicate', 'ended', 'full' or 'missing'; only with the first something was changed.
 */
export const signalScript: Script = defineScript(
  "workflow-signal",
  clockLua +
    String.raw`
local status = redis.call('HGET', KEYS[1], 'status')
if not status then return 'missing' end
if redis.call('SISMEMBER', KEYS[3], ARGV[2]) == 1 then return 'duplicate' end
if ended(status) then return 'ended' end
if redis.call('LLEN', KEYS[2]) >= tonumber(ARGV[4]) then return 'full' end
redis.call('SADD', KEYS[3], ARGV[2])
redis.call('RPUSH', KEYS[2], string.sub(ARGV[3], 1, -2) .. ',"atMs":' .. int(now) .. '}')
redis.call('HINCRBY', KEYS[1], 'wakeSeq', 1)
redis.call('ZADD', KEYS[4], 'LT', now + ${GRACE_MS}, ARGV[1])
return 'stored'
`,
);
