local h = redis.call('HMGET', run, 'status', 'failing')
if not h[1] then return 'missing' end
if ended(h[1]) then return 'ended' end
if not h[2] then return 'active' end
if redis.call('HEXISTS', steps, undo) == 1 then return 'skipped' end
local seq = redis.call('HINCRBY', run, 'seq', 1)
redis.call('HSET', steps, undo, string.sub(record, 1, -2) .. ',"seq":' .. int(seq) .. ',"atMs":' .. int(now) .. '}')
redis.call('HDEL', steps, undo .. '~')
redis.call('HINCRBY', run, 'wakeSeq', 1)
redis.call('ZADD', wakes, 'LT', now + GRACE_MS, id)
return 'skipped'
