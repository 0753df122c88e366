local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local answer = { -1, redis.call('EXISTS', resuming, aborts) }
for _, member in ipairs(redis.call('ZRANGEBYSCORE', firing, '-inf', now, 'LIMIT', 0, limit)) do
  redis.call('ZADD', firing, now + claimMs, member)
  answer[#answer + 1] = member
end
if #answer - 2 < limit then
  for _, member in ipairs(redis.call('ZRANGEBYSCORE', timers, '-inf', now, 'LIMIT', 0, limit - #answer + 2)) do
    redis.call('ZREM', timers, member)
    redis.call('ZADD', firing, now + claimMs, member)
    answer[#answer + 1] = member
  end
end
for _, set in ipairs({ timers, firing }) do
  local head = redis.call('ZRANGE', set, 0, 0, 'WITHSCORES')
  if head[2] then
    local waitMs = math.max(0, tonumber(head[2]) - now)
    if answer[1] == -1 or waitMs < answer[1] then answer[1] = waitMs end
  end
end
return answer
