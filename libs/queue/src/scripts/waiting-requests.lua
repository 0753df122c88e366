local numbers = {}
for i, item in ipairs(each) do
  local h = redis.call('HMGET', item.key, 'number', 'pending')
  numbers[i] = (tonumber(h[2]) or 0) > 0 and tonumber(h[1]) or 0
end
return numbers
