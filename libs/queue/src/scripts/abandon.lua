local h = redis.call('HMGET', key, 'epoch', 'owner')
if h[1] ~= epoch or not h[2] or h[2] == '' then return 0 end
-- The next begin finds the lease expired, and counts the attempt as lost.
redis.call('HSET', key, 'leaseUntil', '0')
local job = redis.call('GET', bull .. 'de:' .. member)
if job and redis.call('LREM', bull .. 'active', 1, job) > 0 then
  -- As BullMQ does with the job of a worker that has stalled.
  redis.call('DEL', bull .. job .. ':lock')
  redis.call('SREM', bull .. 'stalled', job)
  redis.call('HINCRBY', bull .. job, 'stc', 1)
  redis.call('RPUSH', bull .. 'wait', job)
  redis.call('ZADD', bull .. 'marker', '0', '0')
end
return 1
