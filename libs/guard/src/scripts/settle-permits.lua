local lost = {}
for _, item in ipairs(each) do
  if item.action == 'release' then
    redis.call('ZREM', slots, item.name)
  elseif item.action == 'leave' then
    leave(item.name)
  elseif redis.call('ZSCORE', slots, item.name) then
    redis.call('ZADD', slots, int(nowUs + LIMIT.leaseUs), item.name)
  else
    lost[#lost + 1] = item.name
  end
end
local called = callWaiters()
store()
return { 'settled', lost, called }
