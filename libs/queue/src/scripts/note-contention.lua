local function dropOldest()
  local all, oldest, oldestMs = redis.call('HGETALL', contention), nil, nil
  for i = 1, #all, 2 do
    local lastMs = tonumber(string.match(all[i + 1], '(%d+)$'))
    if not oldestMs or lastMs < oldestMs then oldest, oldestMs = all[i], lastMs end
  end
  if oldest then redis.call('HDEL', contention, oldest) end
end
local function rank(set, by, member)
  redis.call('ZINCRBY', set, by, member)
  redis.call('ZREMRANGEBYRANK', set, 0, -members - 1)
  redis.call('PEXPIRE', set, retentionMs)
end

local answer = {}
for _, pair in ipairs(each) do
  local by = pair.count
  local name = pair.manager .. '\n' .. pair.path
  local field = pair.kind .. '\n' .. name
  local count, episode, firstMs = 0, 0, now
  local known = redis.call('HGET', contention, field)
  if known then
    local a, b, c, d = string.match(known, '^(%d+) (%d+) (%d+) (%d+)$')
    count = tonumber(a)
    if now - tonumber(d) <= pauseMs then episode, firstMs = tonumber(b), tonumber(c) end
  elseif redis.call('HLEN', contention) >= most then
    dropOldest()
  end
  redis.call('HSET', contention, field, (count + by) .. ' ' .. (episode + by) .. ' ' .. firstMs .. ' ' .. now)
  if pair.kind == 'takeover' and episode + by >= 2 then rank(flips, by, object .. '\n' .. name) end
  answer[#answer + 1] = episode + by
end
redis.call('PEXPIRE', contention, retentionMs)
if lost > 0 then rank(hot, lost, object) end
return answer
