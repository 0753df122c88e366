return redis.call('INFO', 'server') .. redis.call('INFO', 'replication')
