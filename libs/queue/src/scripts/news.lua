local NEWS_BURST = 5
local NEWS_REFILL_MS = 10000

local function wakes(key, hold, class, now)
  if hold == '' then return true end
  if hold ~= 'backoff' then return false end
  local h = redis.call('HMGET', key, 'woken', 'newsTokens', 'newsAt')
  if class == 1 or h[1] == '1' then
    redis.call('HSET', key, 'woken', '1')
    return true
  end
  local tokens = math.min(NEWS_BURST, (tonumber(h[2]) or NEWS_BURST) + (now - (tonumber(h[3]) or now)) / NEWS_REFILL_MS)
  if tokens < 1 then return false end
  redis.call('HSET', key, 'woken', '1', 'newsTokens', tokens - 1, 'newsAt', now)
  return true
end
