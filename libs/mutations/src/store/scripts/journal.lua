if redis.call('HGET', lane, 'holder') ~= holder then return 'fenced' end
-- A repeated call after the end of its batch: its plans are not those of the next batch.
if redis.call('HEXISTS', lane, 'batch') == 0 then return 'fenced' end
redis.call('HSET', lane, 'plans', plans)
return 'held'
