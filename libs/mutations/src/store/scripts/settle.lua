local known = redis.call('HGET', lane, 'holder')
if known ~= holder then
  -- The reply of the call that ended the last mutations was lost.
  if known or #each == 0 or redis.call('EXISTS', waiting) == 1 then return 'fenced' end
  for _, verdict in ipairs(each) do
    local state = redis.call('HGET', root .. '/mutation/' .. verdict.id, 'state')
    if state == 'waiting' or state == 'applying' then return 'fenced' end
  end
  return 'empty'
end
local answer = 'held'
local settled = {}
local ended = {}
for _, verdict in ipairs(each) do
  settled[verdict.id] = true
  if endMutation(root, verdict.id, verdict.outcome, verdict.result) then ended[#ended + 1] = verdict.id end
end
local left = {}
for _, id in ipairs(cjson.decode(redis.call('HGET', lane, 'batch') or '[]')) do
  if not settled[id] then left[#left + 1] = id end
end
if #left > 0 then
  redis.call('HSET', lane, 'batch', cjson.encode(left), 'plans', plans)
else
  redis.call('HDEL', lane, 'batch', 'plans')
  if redis.call('EXISTS', waiting) == 0 then
    redis.call('DEL', lane)
    redis.call('ZREM', objects, object)
    answer = 'empty'
  end
end
publishEnded(root, ended)
return answer
