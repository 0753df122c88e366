local old = redis.call('ZRANGEBYSCORE', ended, '-inf', int(now - retentionMs), 'LIMIT', 0, most)
for _, id in ipairs(old) do
  local key = root .. '/mutation/' .. id
  local object = redis.call('HGET', key, 'object')
  redis.call('DEL', key)
  redis.call('ZREM', root .. '/index', id)
  redis.call('ZREM', ended, id)
  if object then redis.call('ZREM', root .. '/of/' .. object, id) end
end
local expired = {}
local late = redis.call('ZRANGEBYSCORE', deadlines, '-inf', int(now), 'LIMIT', 0, most)
for _, id in ipairs(late) do
  redis.call('ZREM', deadlines, id)
  local row = redis.call('HMGET', root .. '/mutation/' .. id, 'state', 'object')
  -- The worker that has taken a mutation decides about its deadline.
  if row[1] == 'waiting' and endMutation(root, id, 'expired', expiry) then
    redis.call('ZREM', root .. '/waiting/' .. row[2], id)
    expired[#expired + 1] = id
  end
end
publishEnded(root, expired)
local due = redis.call('ZRANGEBYSCORE', objects, '-inf', int(now), 'LIMIT', 0, most)
for _, object in ipairs(due) do redis.call('ZADD', objects, int(now + GRACE_MS), object) end
table.insert(due, 1, (#old == most or #late == most or #due == most) and 'more' or 'done')
return due
