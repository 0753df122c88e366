local epoch = redis.call('HINCRBY', state, 'epoch', 1)
return { epoch, redis.call('HGET', state, 'cursor') or '' }
