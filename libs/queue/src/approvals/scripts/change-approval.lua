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
  redis.call('DEL', plan)
elseif record ~= '' then
  redis.call('SET', plan, record)
end
return 'done'
