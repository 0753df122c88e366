import { defineScript, type Script } from "@konverge/redis";
import { clockLua, HELD_CHECK_MS } from "./clock.ts";
import { moveLua } from "./run-index.ts";

/**
 * Takes a run for one activation and answers all that is known of it.
 *
 * KEYS: 1 run, 2 steps (hashes), 3 signals (list), 4 wakes (sorted set).
 * ARGV: 1 lease (the epoch of the queue's attempt), 2 owner (of this attempt alone), 3 "1" to take it with a lease that is
 * not newer, 4 id, 5 what the names of runs begin with,
 * 6 what those of the index by status begin with.
 * Answer: { 'missing' }; { 'ended', parent's workflow, parent, next, key to request }; { 'fenced' }: a newer lease has claimed it; {
 * 'waiting' }: the run that it replaces has not ended; { 'held', epoch, now, run, steps, signals }.
 *
 * The same owner twice gets the same epoch, since a lost connection repeats the call.
 */
export const claimScript: Script = defineScript(
  "workflow-claim",
  clockLua +
    moveLua +
    String.raw`
local h = redis.call('HMGET', KEYS[1], 'status', 'lease', 'owner', 'after', 'parentWorkflow', 'parent', 'next', 'failing',
  'createdAt', 'notify')
local status, lease, after = h[1], tonumber(h[2]), h[4] or ''
if not status then return { 'missing' } end
if ended(status) then return { 'ended', h[5], h[6], h[7] or '', h[10] or '' } end
local isSame = h[3] == ARGV[2]
if not isSame and ARGV[3] ~= '1' and tonumber(ARGV[1]) <= lease then return { 'fenced' } end
redis.call('ZADD', KEYS[4], now + ${HELD_CHECK_MS}, ARGV[4])
if after ~= '' then
  local before = redis.call('HGET', ARGV[5] .. after, 'status')
  if before and not ended(before) then return { 'waiting' } end
  redis.call('HSET', KEYS[1], 'after', '')
end
local epoch = isSame and redis.call('HGET', KEYS[1], 'epoch') or int(redis.call('HINCRBY', KEYS[1], 'epoch', 1))
redis.call('HSETNX', KEYS[1], 'startedAt', int(now))
local taken = h[8] and 'compensating' or 'running'
move(ARGV[6], ARGV[4], status, taken, h[9])
redis.call('HSET', KEYS[1], 'status', taken, 'lease', ARGV[1], 'owner', ARGV[2], 'reason', '',
  'parkedUntil', '', 'died', status == 'running' and '1' or '')
return { 'held', epoch, int(now), redis.call('HGETALL', KEYS[1]), redis.call('HGETALL', KEYS[2]),
  redis.call('LRANGE', KEYS[3], 0, -1) }
`,
);
