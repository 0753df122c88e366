import { defineScript, type Script } from "@konverge/redis";
import { noteLua } from "./pause.ts";

/**
 * Withdraws one request. What others requested of the same key stays: the key is let go, or its attempt aborted, only when
 * every request that it waits or runs for has been withdrawn.
 *
 * KEYS: 1 key hash, 2 cancelled (hash by number), 3 aborts (hash), 4 parked, 5 ageing (sorted sets), 6 orders (list).
 * ARGV: 1 key, 2 number of the request, 3 note, 4 order (JSON objects), 5 retention in ms.
 * Answer: unknown (no such request), finished (or withdrawn before: nothing was changed), withdrawn (nobody else waits),
 * shared (withdrawn, and the key goes on for others), aborting (the attempt that runs for it is being ended).
 */
export const cancelScript: Script = defineScript(
  "cancel",
  noteLua +
    String.raw`
local key, cancelled, member, asked = KEYS[1], KEYS[2], ARGV[1], tonumber(ARGV[2])
local h = redis.call('HMGET', key, 'number', 'covered', 'finished', 'owner', 'epoch')
local number, covered, finished = tonumber(h[1]) or 0, tonumber(h[2]) or 0, tonumber(h[3]) or 0
if asked > number then return 'unknown' end
if asked <= finished or redis.call('HEXISTS', cancelled, asked) == 1 then return 'alreadyFinished' end

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local note = noteAt(ARGV[3], now)
redis.call('HSET', cancelled, asked, note)
redis.call('PEXPIRE', cancelled, ARGV[5])
redis.call('HSET', key, 'cancels', '1')
logAction(KEYS[6], noteAt(ARGV[4], now))

-- Of those that an attempt has begun for, and of those that none has.
local begun, waiting = 0, 0
for _, field in ipairs(redis.call('HKEYS', cancelled)) do
  local each = tonumber(field)
  if each > finished and each <= covered then begun = begun + 1 end
  if each > covered and each <= number then waiting = waiting + 1 end
end
local noneBegun, noneWaits = begun == covered - finished, waiting == number - covered

if h[4] and h[4] ~= '' and asked <= covered then
  if not noneBegun then return 'detached' end
  redis.call('HSET', KEYS[3], member, h[5])
  redis.call('HSET', cancelled, asked, '{"epoch":' .. h[5] .. ',' .. string.sub(note, 2))
  return 'aborting'
end
if noneWaits then redis.call('HSET', key, 'pending', '0') end
if h[4] and h[4] ~= '' then return noneWaits and 'cancelled' or 'detached' end
if not (noneWaits and noneBegun) then return 'detached' end
redis.call('HSET', key, 'covered', number, 'finished', number, 'hold', '', 'nextAt', '', 'woken', '')
redis.call('ZREM', KEYS[4], member)
redis.call('ZREM', KEYS[5], member)
return 'cancelled'
`,
);
