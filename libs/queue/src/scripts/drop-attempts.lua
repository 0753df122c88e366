while true do
  local oldest = redis.call('LINDEX', attempts, -1)
  if not oldest or (tonumber(string.match(oldest, '^%d+')) or 0) > untilMs then return 1 end
  redis.call('RPOP', attempts)
end
