if redis.call('HGET', lane, 'holder') ~= holder then return 'fenced' end
redis.call('HSET', lane, 'plans', plans)
return 'held'
