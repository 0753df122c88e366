-- Returns false if the mutation has ended before, or is missing.
local function endMutation(root, id, state, result)
  local key = root .. '/mutation/' .. id
  local known = redis.call('HGET', key, 'state')
  if known ~= 'waiting' and known ~= 'applying' then return false end
  local left = redis.call('DECRBY', root .. '/bytes', redis.call('HSTRLEN', key, 'text'))
  if left <= 0 then redis.call('DEL', root .. '/bytes') end
  redis.call('HSET', key, 'state', state, 'endedAt', int(now), 'result', result)
  local kept = redis.call('HGET', key, 'kept')
  if kept then
    redis.call('HSET', key, 'text', kept)
    redis.call('HDEL', key, 'kept')
  end
  redis.call('HINCRBY', root .. '/outcomes', state, 1)
  redis.call('ZADD', root .. '/ended', int(now), id)
  redis.call('ZREM', root .. '/deadlines', id)
  return true
end
local function publishEnded(root, ids)
  if #ids > 0 then redis.call('PUBLISH', root .. '/settled', table.concat(ids, ' ')) end
end
