local untilMs = now + leaseMs
local answers = {}
for i, lease in ipairs(each) do
  local h = redis.call('HMGET', lease.key, 'epoch', 'owner')
  local ours = h[1] == lease.epoch and h[2] == lease.owner
  if ours then redis.call('HSET', lease.key, 'leaseUntil', untilMs) end
  answers[i] = ours and 1 or 0
end
return answers
