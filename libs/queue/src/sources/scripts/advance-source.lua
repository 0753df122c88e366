if redis.call('HGET', state, 'epoch') ~= int(epoch) then return 'fenced' end
if movesCursor then redis.call('HSET', state, 'cursor', cursor) end
for _, item in ipairs(each) do
  if item.version == '' then
    redis.call('HDEL', versions, item.id)
  else
    redis.call('HSET', versions, item.id, item.version)
  end
end
return 'advanced'
