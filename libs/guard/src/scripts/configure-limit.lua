local known = redis.call('HMGET', limit, 'intervalUs', 'burst', 'concurrency', 'by')
if known[1] == intervalUs and known[2] == burst and known[3] == concurrency then return { 'same', '' } end
redis.call('HSET', limit, 'intervalUs', intervalUs, 'burst', burst, 'concurrency', concurrency, 'by', by, 'options', options)
redis.call('PEXPIRE', limit, string.format('%.0f', LIMIT.configuredMs))
redis.call('SADD', limits, name)
return { 'changed', known[4] or '' }
