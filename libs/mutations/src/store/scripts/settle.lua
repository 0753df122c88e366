if redis.call('HGET', lane, 'holder') ~= holder then return 'fenced' end
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
