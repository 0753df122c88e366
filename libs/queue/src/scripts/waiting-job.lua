local PRIORITY_UNIT = 4294967296
-- Delayed jobs: the time when they are due in ms, times this unit, and a counter.
local DELAYED_UNIT = 4096

-- Ends a job's delay: it is due by any worker's clock, also a slow one. BullMQ's marker wakes a worker to move it.
local function hasten(bull, jobId, priority)
  if not redis.call('ZSCORE', bull .. 'delayed', jobId) then return end
  redis.call('HSET', bull .. jobId, 'priority', priority)
  redis.call('ZADD', bull .. 'delayed', 0, jobId)
  redis.call('ZADD', bull .. 'marker', 0, '0')
end

local function setPriority(bull, jobId, priority)
  local score = tonumber(redis.call('ZSCORE', bull .. 'prioritized', jobId))
  if not score then return end
  redis.call('ZADD', bull .. 'prioritized', string.format('%.0f', priority * PRIORITY_UNIT + score % PRIORITY_UNIT), jobId)
  redis.call('HSET', bull .. jobId, 'priority', priority)
end
