for _, item in ipairs(each) do
  if redis.call('HGET', requesters, item.name) == item.mark then redis.call('HDEL', requesters, item.name) end
end
return redis.status_reply('OK')
