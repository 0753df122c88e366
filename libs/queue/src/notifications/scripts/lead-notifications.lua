local holder = redis.call('GET', leader)
if holder and holder ~= process then return 'other' end
redis.call('SET', leader, process, 'PX', ttlMs)
redis.call('PEXPIRE', told, toldTtlMs)
return holder and 'kept' or 'new'
