local function labelsOf(statuses, id)
  local labels = redis.call('HGET', statuses .. 'labels', id)
  return labels and cjson.decode(labels) or {}
end
local function unlabel(statuses, id)
  for label, value in pairs(labelsOf(statuses, id)) do
    redis.call('ZREM', statuses .. 'label/' .. label .. '=' .. value, id)
  end
  redis.call('HDEL', statuses .. 'labels', id)
end
local function relabel(statuses, id, labels, createdAt)
  unlabel(statuses, id)
  for label, value in pairs(cjson.decode(labels)) do
    redis.call('ZADD', statuses .. 'label/' .. label .. '=' .. value, createdAt, id)
    redis.call('HSET', statuses .. 'labels', id, labels)
  end
end
