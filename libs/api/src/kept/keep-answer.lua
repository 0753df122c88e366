local current = redis.call('GET', answer)
if current and current ~= mark then return 0 end
if value == '' then
  redis.call('DEL', answer)
  return 0
end
redis.call('SET', answer, value, 'PX', keptMs)
if redis.call('ZADD', order, now, name .. ' ' .. size) == 0 then return 0 end
local sum = redis.call('INCRBY', kept, size)
local dropped = 0
while dropped < 100 do
  local oldest = redis.call('ZRANGE', order, 0, 0, 'WITHSCORES')
  if not oldest[1] then break end
  if sum <= budget and tonumber(oldest[2]) + keptMs > now then break end
  local oldestName, bytes = string.match(oldest[1], '^(%S+) (%d+)$')
  redis.call('UNLINK', root .. oldestName)
  redis.call('ZREM', order, oldest[1])
  sum = redis.call('DECRBY', kept, bytes)
  dropped = dropped + 1
end
return dropped
