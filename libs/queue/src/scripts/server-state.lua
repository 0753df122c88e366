local info = redis.call('INFO', 'memory') .. redis.call('INFO', 'replication')
return { info, now }
