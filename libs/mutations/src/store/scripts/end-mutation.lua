-- Returns false if the mutation has ended before, or is missing.
local function endMutation(root, id, state, result)
  local key = root .. '/mutation/' .. id
  local known = redis.call('HGET', key, 'state')
  if known ~= 'waiting' and known ~= 'applying' then return false end
  redis.call('HSET', key, 'state', state, 'endedAt', int(now), 'result', result)
  redis.call('ZADD', root .. '/ended', int(now), id)
  redis.call('ZREM', root .. '/deadlines', id)
  return true
end
local function publishEnded(root, ids)
  if #ids > 0 then redis.call('PUBLISH', root .. '/settled', table.concat(ids, ' ')) end
end
