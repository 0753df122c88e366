local time = redis.call('TIME')
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
local answers = {}
for _, worker in ipairs(redis.call('ZRANGEBYSCORE', seen, '(' .. (nowMs - ttlMs), '+inf')) do
  local report = redis.call('HGET', reports, worker)
  if report then answers[#answers + 1] = report end
end
return answers
