local function move(statuses, id, from, to, createdAt)
  if from == to then return end
  if from then redis.call('ZREM', statuses .. from, id) end
  redis.call('ZADD', statuses .. to, createdAt, id)
end
