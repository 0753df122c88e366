local status = redis.call('HGET', run, 'status')
if not status then return 'missing' end
if redis.call('SISMEMBER', seen, signalId) == 1 then return 'duplicate' end
if ended(status) then return 'ended' end
if redis.call('LLEN', signals) >= most then return 'full' end
redis.call('SADD', seen, signalId)
redis.call('RPUSH', signals, string.sub(signal, 1, -2) .. ',"atMs":' .. int(now) .. '}')
redis.call('HINCRBY', run, 'wakeSeq', 1)
redis.call('ZADD', wakes, 'LT', now + GRACE_MS, id)
return 'stored'
