local function isPaused(status) return status == 'paused' or status == 'pausing' end
local function acknowledgePause(run, id, statuses, createdAt)
  move(statuses, id, 'pausing', 'paused', createdAt)
  redis.call('HSET', run, 'status', 'paused')
end
local function endPause(run, id, statuses, wakes)
  local h = redis.call('HMGET', run, 'status', 'pausedFrom', 'createdAt')
  move(statuses, id, h[1], h[2], h[3])
  redis.call('HSET', run, 'status', h[2])
  redis.call('HDEL', run, 'pause', 'pausedAt', 'pausedFrom')
  redis.call('HINCRBY', run, 'resumes', 1)
  redis.call('HINCRBY', run, 'wakeSeq', 1)
  redis.call('ZADD', wakes, 'LT', now + GRACE_MS, id)
end
