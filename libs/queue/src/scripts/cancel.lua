local h = redis.call('HMGET', key, 'number', 'covered', 'finished', 'owner', 'epoch')
local number, covered, finished = tonumber(h[1]) or 0, tonumber(h[2]) or 0, tonumber(h[3]) or 0
if asked > number then return 'unknown' end
if asked <= finished or redis.call('ZCOUNT', cancelled, asked, asked) == 1 then return 'alreadyFinished' end

local stamped = noteAt(note, now)
redis.call('ZADD', cancelled, asked, int(asked) .. ' ' .. stamped)
local oldestKept = redis.call('ZRANGE', cancelled, -KEPT, -KEPT, 'WITHSCORES')[2]
if oldestKept then
  redis.call('ZREMRANGEBYSCORE', cancelled, '-inf', '(' .. int(math.min(tonumber(oldestKept), finished + 1)))
end
redis.call('PEXPIRE', cancelled, retentionMs)
redis.call('HSET', key, 'cancels', '1')
logAction(actions, noteAt(action, now))

-- Counts of requests with and without a begun attempt.
local begun = redis.call('ZCOUNT', cancelled, '(' .. int(finished), int(covered))
local waiting = redis.call('ZCOUNT', cancelled, '(' .. int(covered), int(number))
local noneBegun, noneWaits = begun == covered - finished, waiting == number - covered

if h[4] and h[4] ~= '' and asked <= covered then
  if not noneBegun then return 'detached' end
  redis.call('HSET', aborts, member, h[5])
  redis.call('ZREMRANGEBYSCORE', cancelled, asked, asked)
  redis.call('ZADD', cancelled, asked, int(asked) .. ' {"epoch":' .. h[5] .. ',' .. string.sub(stamped, 2))
  return 'aborting'
end
if noneWaits then redis.call('HSET', key, 'pending', '0') end
if h[4] and h[4] ~= '' then return noneWaits and 'cancelled' or 'detached' end
if not (noneWaits and noneBegun) then return 'detached' end
redis.call('HSET', key, 'covered', number, 'finished', number, 'hold', '', 'nextAt', '', 'woken', '')
redis.call('ZREM', parked, member)
redis.call('ZREM', aging, member)
return 'cancelled'
