local queues = {}
for i, item in ipairs(each) do queues[i] = item.queue end
local answers = {}
for i, text in ipairs(redis.call('HMGET', pumps, unpack(queues))) do
  local otherMs, isIdle = electedFor(text)
  answers[i] = { otherMs, isIdle and 0 or 1 }
end
return answers
