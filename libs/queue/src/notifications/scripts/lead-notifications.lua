local holder = redis.call('GET', leader)
if holder and holder ~= process then return 'other' end
redis.call('SET', leader, process, 'PX', ttlMs)
return holder and 'kept' or 'new'
