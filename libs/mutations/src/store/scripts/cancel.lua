local row = redis.call('HMGET', root .. '/mutation/' .. id, 'state', 'object')
if not row[1] then return 'missing' end
if row[1] == 'applying' then return 'applying' end
if not endMutation(root, id, 'cancelled', result) then return 'ended' end
local waiting = root .. '/waiting/' .. row[2]
redis.call('ZREM', waiting, id)
if redis.call('EXISTS', waiting, root .. '/lane/' .. row[2]) == 0 then redis.call('ZREM', objects, row[2]) end
publishEnded(root, { id })
return 'cancelled'
