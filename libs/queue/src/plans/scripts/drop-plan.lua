forget(id)
redis.call('LREM', plans, 0, id)
return redis.status_reply('OK')
