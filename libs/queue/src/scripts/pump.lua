local queues = {}
for i, item in ipairs(each) do queues[i] = item.queue end
local elected = redis.call('HMGET', pumps, unpack(queues))
local elections = {}

local function claimFrom(set, item, answer)
  local head = redis.call('ZRANGE', set, 0, 0, 'WITHSCORES')
  local left = limit - (#answer - 7)
  if head[2] and tonumber(head[2]) <= now and left > 0 then
    for _, member in ipairs(redis.call('ZRANGEBYSCORE', set, '-inf', now, 'LIMIT', 0, left)) do
      if set == item.timers then redis.call('ZREM', set, member) end
      redis.call('ZADD', item.firing, now + claimMs, member)
      answer[#answer + 1] = member
    end
    head = redis.call('ZRANGE', set, 0, 0, 'WITHSCORES')
  end
  if not head[2] then return end
  local waitMs = math.max(0, tonumber(head[2]) - now)
  if answer[3] == -1 or waitMs < answer[3] then answer[3] = waitMs end
end

local answers = {}
for i, item in ipairs(each) do
  local otherMs = electedFor(elected[i])
  local answer = { otherMs == 0 and 1 or 0, otherMs, -1, 0, now + claimMs, 0, redis.call('EXISTS', item.active) }
  if otherMs == 0 then
    answer[6] = redis.call('EXISTS', item.aging, item.waiting, item.returned, item.delayed)
    if answer[6] == 0 and redis.call('HLEN', item.fair) > FLOWS_KEPT then answer[6] = 1 end
    elections[#elections + 1] = item.queue
    elections[#elections + 1] = string.format('%s%s %d', owner, answer[7] == 0 and IDLE or '', now + electMs)
  end
  if otherMs == 0 or item.isActive then answer[4] = redis.call('EXISTS', item.resuming, item.aborts) end
  if otherMs == 0 or item.fires then
    claimFrom(item.firing, item, answer)
    claimFrom(item.timers, item, answer)
  end
  answers[i] = answer
end
if #elections > 0 then
  redis.call('HSET', pumps, unpack(elections))
  redis.call('PEXPIRE', pumps, 20 * electMs)
end
return answers
