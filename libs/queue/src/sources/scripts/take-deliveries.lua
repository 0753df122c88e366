local first = redis.call('ZRANGE', due, 0, 0, 'WITHSCORES')
local oldest = redis.call('ZRANGE', received, 0, 0, 'WITHSCORES')
local found = { first[2] and int(tonumber(first[2]) - now) or '', oldest[2] and int(now - tonumber(oldest[2])) or '0',
  int(redis.call('ZCARD', due)) }
for _, number in ipairs(redis.call('ZRANGEBYSCORE', due, '-inf', int(now), 'LIMIT', 0, most)) do
  found[#found + 1] = number
end
return found
