for _, item in ipairs(each) do
  local value = redis.call('HGET', progress, item.kind)
  if value and tonumber(value) < oldest then return 0 end
end
for _, item in ipairs(each) do redis.call('HSET', progress, item.kind, at) end
return 1
