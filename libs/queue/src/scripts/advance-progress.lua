local values = {}
for i, item in ipairs(each) do
  values[i] = tonumber(redis.call('HGET', progress, item.kind)) or 0
  if values[i] > 0 and values[i] < oldest then return 0 end
end
-- A process that was suspended can be late.
for i, item in ipairs(each) do
  if values[i] < tonumber(at) then redis.call('HSET', progress, item.kind, at) end
end
return 1
