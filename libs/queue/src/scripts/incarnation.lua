local marker = redis.call('GET', incarnation)
if not marker then
  marker = fresh
  redis.call('SET', incarnation, marker)
end
return { marker, redis.call('INFO', 'server') .. redis.call('INFO', 'replication') }
