-- BullMQ's script unpacks its arguments; here they are not packed.
local AS_IS = { unpack = function(value) return value end }

-- For all jobs of a call: the next id, the next place within a priority, and the number of added jobs.
local nextId, nextPlace
local added = 0

local function newJob(bull, member, data, priority, now, left)
  if not nextId then
    nextId = redis.call('INCRBY', bull .. 'id', left) - left
    nextPlace = redis.call('INCRBY', bull .. 'pc', left) - left
  end
  nextId, nextPlace, added = nextId + 1, nextPlace + 1, added + 1
  local jobId = string.format('%d', nextId)
  redis.call('HSET', bull .. jobId, 'name', JOB_NAME, 'data', data, 'opts', JOB_OPTIONS, 'timestamp', now, 'delay', '0',
    'priority', string.format('%d', priority), 'deid', member)
  redis.call('SET', bull .. 'de:' .. member, jobId)
  redis.call('ZADD', bull .. 'prioritized', string.format('%.0f', priority * PRIORITY_UNIT + nextPlace % PRIORITY_UNIT), jobId)
end

-- "raised" if an existing job must take the place, "isFirst" if it takes the better of both; "left" is the number of jobs that the call may still add, including this.
local function addJob(bull, member, priority, wake, raised, isFirst, now, left)
  local data, owner = '{"key":"' .. member .. '"}', redis.call('GET', bull .. 'de:' .. member)
  if not owner then return newJob(bull, member, data, priority, now, left) end
  if redis.call('ZSCORE', bull .. 'prioritized', owner) then
    if raised or (isFirst and priority < (tonumber(redis.call('HGET', bull .. owner, 'priority')) or 0)) then
      setPriority(bull, owner, priority)
    end
    return
  end
  -- It runs, backs off, or no longer exists.
  local options = cjson.decode(JOB_OPTIONS)
  options.priority, options.timestamp = priority, now
  options.de = { id = member, keepLastIfActive = true, reschedule = wake }
  local keys = {}
  for i, name in ipairs({ 'marker', 'meta', 'id', 'prioritized', 'delayed', 'completed', 'active', 'events', 'pc' }) do
    keys[i] = bull .. name
  end
  local job = bullAdd(keys, { { bull, '', JOB_NAME, now, [9] = bull .. 'de:' .. member }, data, options }, AS_IS)
  -- A parked follow-up already has the priority; a job in backoff gets it when it starts.
  if raised and job == owner then redis.call('HSET', bull .. owner, 'priority', priority) end
end

-- Notifies workers like BullMQ, once for all jobs of the call.
local function announceJobs(bull)
  if added == 0 then return end
  local h = redis.call('HMGET', bull .. 'meta', 'paused', 'concurrency')
  if h[1] or (h[2] and redis.call('LLEN', bull .. 'active') >= tonumber(h[2])) then return end
  redis.call('ZADD', bull .. 'marker', '0', '0')
end
