if sentAtMs > 0 and math.abs(now - sentAtMs) > toleranceMs then return { 'skewed', int(now - sentAtMs) } end
for _, item in ipairs(each) do
  local known = redis.call('GET', item.seen)
  if known then return { 'duplicate', known } end
end
if redis.call('ZCARD', due) >= MAX_WAITING then return { 'full', '' } end
if tonumber(redis.call('GET', bytes) or '0') + #text > MAX_WAITING_BYTES then return { 'full', '' } end
redis.call('HSET', root .. '/delivery/' .. number, 'text', text, 'receivedAt', int(now), 'tries', '0')
redis.call('ZADD', due, int(now), number)
redis.call('ZADD', received, int(now), number)
redis.call('INCRBY', bytes, #text)
for _, item in ipairs(each) do redis.call('SET', item.seen, number, 'PX', int(windowMs)) end
redis.call('PUBLISH', channel, name)
return { 'accepted', number }
