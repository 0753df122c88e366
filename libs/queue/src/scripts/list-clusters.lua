local answers = {}
for _, worker in ipairs(redis.call('ZRANGEBYSCORE', seen, '(' .. (now - ttlMs), '+inf')) do
  local report = redis.call('HGET', reports, worker)
  if report then answers[#answers + 1] = report end
end
return answers
