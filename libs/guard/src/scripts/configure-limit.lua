local known = redis.call('HMGET', limit, 'intervalUs', 'burst', 'concurrency', 'by')
local isSame = known[1] == intervalUs and known[2] == burst and known[3] == concurrency
if not isSame then
  redis.call('HSET', limit, 'intervalUs', intervalUs, 'burst', burst, 'concurrency', concurrency, 'by', by, 'options', options)
end
-- Also for the same rules: a reader may have removed the name when the rules had expired.
redis.call('PEXPIRE', limit, string.format('%.0f', LIMIT.configuredMs))
redis.call('SADD', limits, name)
if isSame then return { 'same', '' } end
return { 'changed', known[4] or '' }
