local sets = {}
for i, item in ipairs(each) do
  sets[i] = redis.call('ZREVRANGE', item.set, 0, most - 1, 'WITHSCORES')
end
return sets
