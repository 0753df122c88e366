return redis.call('INFO', 'memory')
