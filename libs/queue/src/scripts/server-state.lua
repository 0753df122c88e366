return redis.call('INFO', 'memory') .. redis.call('INFO', 'replication')
