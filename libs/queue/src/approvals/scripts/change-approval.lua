if (redis.call('HGET', approvals, key) or '') ~= expected then return 'changed' end
if stored == '' then
  redis.call('HDEL', approvals, key)
else
  redis.call('HSET', approvals, key, stored)
end
if isDue then
  redis.call('SADD', due, key)
else
  redis.call('SREM', due, key)
end
if stored == '' then
  forget(key)
elseif record ~= '' then
  forget(key)
  redis.call('SET', records .. key, record)
  count(key, record)
  forgetOldest(key, KEPT_MS)
end
return 'done'
