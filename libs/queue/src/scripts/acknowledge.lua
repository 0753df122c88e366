local removed = 0
for _, item in ipairs(each) do
  if tonumber(redis.call('ZSCORE', firing, item.member)) == claimedUntilMs then
    removed = removed + redis.call('ZREM', firing, item.member)
  end
end
return removed
