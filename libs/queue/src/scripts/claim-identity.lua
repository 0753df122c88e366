local answers = {}
for i, claim in ipairs(each) do
  redis.call('ZREMRANGEBYSCORE', claim.holders, '-inf', now)
  local own = claim.cluster .. '/'
  local other = ''
  for _, holder in ipairs(redis.call('ZRANGE', claim.holders, 0, -1)) do
    if string.sub(holder, 1, #own) ~= own then other = holder end
  end
  if other == '' then
    redis.call('ZADD', claim.holders, now + ttlMs, own .. worker)
    redis.call('PEXPIRE', claim.holders, ttlMs)
  else
    redis.call('ZREM', claim.holders, own .. worker)
  end
  answers[i] = other
end
return answers
