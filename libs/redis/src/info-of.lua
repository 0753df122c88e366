return redis.call('INFO', 'server')
