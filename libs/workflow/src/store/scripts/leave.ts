import { defineScript, type Script } from "@konverge/redis";
import { clockLua, GRACE_MS } from "./clock.ts";
import { forgetLua, moveLua } from "./run-index.ts";
import { RECHECK_MS, waitsLua } from "./waits.ts";

/**
 * Ends an activation: the run is parked, stuck, about to be compensated, or over.
 *
 * KEYS: 1 run, 2 steps (hashes), 3 signals (list), 4 seen signals (set), 5 wakes, 6 ended (sorted sets), 7 cancelling (set), 8
 * holder of the key (text), 9 index (sorted set), 10 kinds waited for (set), 11 rechecks (sorted set).
 * ARGV: 1 epoch, 2 parked | stuck | compensating | done | failed | cancelled, 3 until (ms) or "", 4 text: what it waits
 * for (JSON) or "", why it is stuck, how it fails (JSON), result or error (JSON), 5 id, 6 wakeSeq of the claim, 7 retention in ms,
 * 8 what the names of the index by status begin with, 9 objects that it goes on to wait for, parted by spaces, 10 workflow and id,
 * 11 what the names of the indexes of waits begin with.
 * Answer: { 'left', parent's workflow, parent, next, key to request when it has ended }, or { 'fenced' }: nothing was changed.
 *
 * One that ends takes two out of the index whose time is over, so the index never grows faster than it shrinks.
 * What came since the claim may still wait for its request, so it stays noted for the sweep.
 */
export const leaveScript: Script = defineScript(
  "workflow-leave",
  clockLua +
    moveLua +
    forgetLua +
    waitsLua +
    String.raw`
local h = redis.call('HMGET', KEYS[1], 'epoch', 'parentWorkflow', 'parent', 'next', 'wakeSeq', 'failing', 'status', 'createdAt',
  'watched', 'notify')
if h[1] ~= ARGV[1] then return { 'fenced' } end
local kind, untilMs, text, id = ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local left = { 'left', h[2], h[3], h[4] or '', h[10] or '' }
if ended(h[7]) then return left end
if kind == 'compensating' then
  move(ARGV[8], id, h[7], kind, h[8])
  redis.call('HSET', KEYS[1], 'status', kind, 'failing', text)
  return left
end
if h[9] and h[9] ~= '' then
  local still = {}
  for object in string.gmatch(ARGV[9], '%S+') do still[object] = true end
  for object in string.gmatch(h[9], '%S+') do
    if not still[object] then leaveWait(ARGV[11], KEYS[10], object, ARGV[10]) end
  end
  redis.call('HSET', KEYS[1], 'watched', ARGV[9])
  if ARGV[9] == '' then redis.call('ZREM', KEYS[11], id) else redis.call('ZADD', KEYS[11], now + ${RECHECK_MS}, id) end
end
if kind == 'parked' or kind == 'stuck' then
  local status = (kind == 'parked' and h[6]) and 'compensating' or kind
  move(ARGV[8], id, h[7], status, h[8])
  redis.call('HSET', KEYS[1], 'status', status, 'reason', kind == 'stuck' and text or '', 'parkedUntil', untilMs,
    'waits', kind == 'parked' and text or '')
  if h[5] ~= ARGV[6] then
    redis.call('ZADD', KEYS[5], now, id)
  elseif untilMs ~= '' then
    redis.call('ZADD', KEYS[5], tonumber(untilMs) + ${GRACE_MS}, id)
  else
    redis.call('ZREM', KEYS[5], id)
  end
  return left
end
move(ARGV[8], id, h[7], kind, h[8])
redis.call('HSET', KEYS[1], 'status', kind, kind == 'done' and 'result' or 'error', text, 'endedAt', int(now), 'reason', '',
  'parkedUntil', '', 'waits', '')
redis.call('ZREM', KEYS[5], id)
redis.call('SREM', KEYS[7], id)
redis.call('ZADD', KEYS[6], now, id)
forget(KEYS[6], KEYS[9], ARGV[8], now - tonumber(ARGV[7]), 2)
for i = 1, 4 do redis.call('PEXPIRE', KEYS[i], ARGV[7]) end
if redis.call('GET', KEYS[8]) == id then redis.call('PEXPIRE', KEYS[8], ARGV[7]) end
return left
`,
);
