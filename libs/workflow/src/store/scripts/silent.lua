local found = {}
for _, member in ipairs(redis.call('ZRANGEBYSCORE', silent, '-inf', now, 'LIMIT', 0, most)) do
  local id, lease, step = string.match(member, '^([^\n]*)\n([^\n]*)\n(.*)$')
  local h = redis.call('HMGET', runRoot .. id, 'lease', 'status')
  local progress = redis.call('HGET', stepsRoot .. id, step .. '~')
  local isHeld = h[1] == lease and (h[2] == 'running' or h[2] == 'compensating' or h[2] == 'pausing')
  if isHeld and progress and string.find(progress, '^{"attempts":%d+,"untilMs":%d+,"running":') then
    redis.call('ZADD', silent, now + AGAIN_MS, member)
    found[#found + 1] = id
    found[#found + 1] = lease
  else
    redis.call('ZREM', silent, member)
  end
end
local first = redis.call('ZRANGE', silent, 0, 0, 'WITHSCORES')
return { found, first[2] and math.max(0, first[2] - now) or -1 }
