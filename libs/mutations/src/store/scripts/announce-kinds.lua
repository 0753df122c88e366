for _, kind in ipairs(each) do redis.call('HSET', kinds, kind.name, int(now) .. ' ' .. kind.text) end
local known = redis.call('HGETALL', kinds)
for at = 1, #known, 2 do
  local atMs = tonumber(string.match(known[at + 1], '^%d+') or '0')
  if atMs < now - STALE_MS then redis.call('HDEL', kinds, known[at]) end
end
return #each
