import { defineScript, type Script } from "@konverge/redis";
import { clockLua, GRACE_MS } from "./clock.ts";
import { moveLua } from "./run-index.ts";

/**
 * Lets a run that failed or was cancelled go on behind the records that are kept of it.
 *
 * KEYS: 1 run, 2 steps (hashes), 3 signals (list), 4 seen signals (set), 5 wakes, 6 ended (sorted sets), 7 holder of the key
 * (text).
 * ARGV: 1 id, 2 epoch of the end, 3 what the names of runs begin with, 4 what those of the index by status begin with, 5 who
 * and why (JSON), 6 records that are kept, 7... fields of steps to drop.
 * Answer: { 'resumed' }; { 'changed' }: it is not as it was read; { 'rejected', id of another run that holds the key }.
 *
 * The epoch grows, so that whoever held the run before its end writes nothing to it any more.
 */
export const resumeScript: Script = defineScript(
  "workflow-resume",
  clockLua +
    moveLua +
    String.raw`
local h = redis.call('HMGET', KEYS[1], 'status', 'epoch', 'key', 'createdAt')
local status, id = h[1], ARGV[1]
if (status ~= 'failed' and status ~= 'cancelled') or h[2] ~= ARGV[2] then return { 'changed' } end
if h[3] ~= '' then
  local holder = redis.call('GET', KEYS[7])
  local other = holder and holder ~= id and redis.call('HGET', ARGV[3] .. holder, 'status')
  if other and not ended(other) then return { 'rejected', holder } end
  redis.call('SET', KEYS[7], id)
end
for i = 7, #ARGV do redis.call('HDEL', KEYS[2], ARGV[i]) end
for i = 1, 4 do redis.call('PERSIST', KEYS[i]) end
redis.call('HDEL', KEYS[1], 'result', 'error', 'endedAt', 'cancel', 'cancelledAt', 'failing', 'next')
redis.call('HINCRBY', KEYS[1], 'epoch', 1)
redis.call('HINCRBY', KEYS[1], 'wakeSeq', 1)
redis.call('HSET', KEYS[1], 'status', 'queued', 'seq', ARGV[6], 'retry', ARGV[5], 'after', '', 'waits', '', 'died', '')
move(ARGV[4], id, status, 'queued', h[4])
redis.call('ZREM', KEYS[6], id)
redis.call('ZADD', KEYS[5], now + ${GRACE_MS}, id)
return { 'resumed' }
`,
);
