forget(id)
redis.call('SET', records .. id, record, 'PX', keptMs)
count(id, record)
redis.call('LREM', plans, 0, id)
redis.call('LPUSH', plans, id)
for _, each in ipairs(redis.call('LRANGE', plans, MOST_OF_OBJECT, -1)) do forget(each) end
redis.call('LTRIM', plans, 0, MOST_OF_OBJECT - 1)
-- Redis has deleted the expired records.
forgetOldest(id, keptMs)
for _, key in ipairs({ plans, ages, sizes }) do redis.call('PEXPIRE', key, keptMs) end
return redis.status_reply('OK')
