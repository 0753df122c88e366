import { defineScript, type Script } from "@konverge/redis";
import { cancelLua } from "./cancel.ts";
import { clockLua, GRACE_MS } from "./clock.ts";
import { moveLua } from "./run-index.ts";

/**
 * Creates a run, unless its id is there or its key is taken.
 *
 * KEYS: 1 run (hash), 2 wakes, 3 index (sorted sets), 4 cancelling (set), 5 holder of the key (text).
 * ARGV: 1 id, 2 version, 3 input (JSON or ""), 4 key or "", 5 attach | reject | supersede, 6 parent's workflow or "", 7
 * parent's id or "", 8 what the names of runs begin with, 9 what those of the index by status begin with, 10 who starts it or
 * "", 11 of which run it is another try, who wants that and why (JSON) or "", 12 uid and 13 generation of the object that it is
 * for or "", 14 key to request when it ends or "".
 * Answer: { 'exists' }; { 'attached' | 'rejected', id of the holder }; { 'created', id of the run that it replaces or "" }.
 *
 * A run for an older generation than that of the last one with its key does not begin, also when that one has ended: whoever
 * starts it has been overtaken. A run that replaces another waits until that has ended; the other one is cancelled in the same move.
 */
export const startScript: Script = defineScript(
  "workflow-start",
  clockLua +
    cancelLua +
    moveLua +
    String.raw`
if redis.call('EXISTS', KEYS[1]) == 1 then return { 'exists' } end
local id, after = ARGV[1], ''
if ARGV[4] ~= '' then
  local holder = redis.call('GET', KEYS[5])
  local known = holder and redis.call('HMGET', ARGV[8] .. holder, 'status', 'uid', 'generation') or {}
  local status = known[1]
  if ARGV[12] ~= '' and known[2] == ARGV[12] and tonumber(known[3]) > tonumber(ARGV[13]) then
    return { 'attached', holder }
  end
  if status and not ended(status) then
    if ARGV[5] == 'attach' then return { 'attached', holder } end
    if ARGV[5] == 'reject' then return { 'rejected', holder } end
    after = holder
    order(ARGV[8] .. holder, KEYS[2], KEYS[4], holder, cjson.encode({ reason = 'superseded by ' .. id }))
    redis.call('HSET', ARGV[8] .. holder, 'next', id)
  end
  redis.call('SET', KEYS[5], id)
end
redis.call('HSET', KEYS[1], 'status', 'queued', 'version', ARGV[2], 'input', ARGV[3], 'key', ARGV[4], 'parentWorkflow', ARGV[6],
  'parent', ARGV[7], 'by', ARGV[10], 'retry', ARGV[11], 'uid', ARGV[12], 'generation', ARGV[13], 'notify', ARGV[14], 'after', after,
  'createdAt', int(now), 'epoch', '0', 'lease', '0', 'wakeSeq', '0', 'seq', '0')
redis.call('ZADD', KEYS[3], now, id)
move(ARGV[9], id, nil, 'queued', now)
redis.call('ZADD', KEYS[2], now + ${GRACE_MS}, id)
return { 'created', after }
`,
);
