local active, waiting = bull .. 'active', bull .. 'prioritized'

local function lockOf(jobId) return bull .. jobId .. ':lock' end

local function dataOf(member) return '{"key":"' .. member .. '"}' end

-- Answers for a job that this slot holds.
local function beginJob(answer, slot, member)
  -- A broken key must not take the other slots along; its job begins as usual and reports the error.
  local isBegun, begun = pcall(begin, hashes .. member, slot.nextOwner)
  if isBegun then answer[6] = begun end
end

-- Any job. Its key does not begin if BullMQ is to fail or repeat the job.
local function handOut(answer, slot, jobId)
  local fields, found = redis.call('HGETALL', bull .. jobId), {}
  for i = 1, #fields, 2 do found[fields[i]] = fields[i + 1] end
  answer[4], answer[5] = jobId, fields
  local member = found.deid
  if member and found.data == dataOf(member) and not found.defa and not found.rjk then beginJob(answer, slot, member) end
end

local function start(answer, slot, jobId)
  local job = bull .. jobId
  redis.call('SET', lockOf(jobId), slot.token, 'PX', leaseMs)
  local h = redis.call('HMGET', job, 'deid', 'data', 'opts', 'ats', 'priority', 'timestamp')
  redis.call('HSET', job, 'processedOn', clock, 'ats', string.format('%d', (tonumber(h[4]) or 0) + 1))
  if h[4] or h[3] ~= JOB_OPTIONS or not h[1] or h[2] ~= dataOf(h[1]) then return handOut(answer, slot, jobId) end
  -- A request that starts for the first time; all else is the same in all such jobs.
  answer[4], answer[5] = jobId, { h[1], h[5], h[6] }
  beginJob(answer, slot, h[1])
end

-- The job that this slot has, if an earlier execution of the same call fetched it and its reply was lost.
local function findFetched(token)
  local jobs, locks = redis.call('LRANGE', active, 0, MOST_ACTIVE), {}
  for i, jobId in ipairs(jobs) do locks[i] = lockOf(jobId) end
  if #locks == 0 then return end
  for i, held in ipairs(redis.call('MGET', unpack(locks))) do
    if held == token then return jobs[i] end
  end
end

-- Removes what BullMQ's finish removes. Returns false if that must decide what happens.
local removed, unstalled = {}, {}
local function finish(slot, names, owner, lock)
  if lock ~= slot.token or redis.call('LREM', active, -1, slot.jobId) == 0 then return false end
  local job = bull .. slot.jobId
  removed[#removed + 1] = job
  removed[#removed + 1] = job .. ':logs'
  removed[#removed + 1] = names.lock
  if owner == slot.jobId then removed[#removed + 1] = names.owner end
  unstalled[#unstalled + 1] = slot.jobId
  return true
end

local answers, plain, names = {}, {}, {}
local wantsNext = false
for i, slot in ipairs(each) do
  slot.key, slot.list = hashes .. slot.member, lists .. slot.member
  local isStored, state, priority, isRepeated = pcall(endAttempt, slot)
  if not isStored then
    -- Those before it are complete.
    settleEnds()
    error(state)
  end
  answers[i] = { state, priority, 'open' }
  if state == 'stored' and priority == 0 then
    local entry = { at = i, isRepeated = isRepeated, lock = lockOf(slot.jobId), owner = bull .. 'de:' .. slot.member }
    plain[#plain + 1] = entry
    names[#names + 1] = entry.lock
    names[#names + 1] = entry.owner
    wantsNext = wantsNext or slot.nextOwner ~= ''
  end
end

-- BullMQ's own scripts take a full Redis, which starts no attempts, a paused or limited queue, jobs without priority, and jobs
-- whose delay is over. By the clock of the worker, as in BullMQ: a worker whose clock is ahead would otherwise be woken again
-- and again.
local nextAt
local function isPlainQueue()
  if isFull or hasWaitList then return false end
  if not wantsNext then return true end
  local meta = redis.call('HMGET', bull .. 'meta', 'paused', 'concurrency', 'max')
  local delayed = redis.call('ZRANGE', bull .. 'delayed', 0, 0, 'WITHSCORES')
  nextAt = delayed[2] and math.floor(tonumber(delayed[2]) / DELAYED_UNIT)
  return not (meta[1] or meta[2] or meta[3] or (nextAt and nextAt <= tonumber(clock)))
end

local fetching, refetched = {}, {}
local function finishAll()
  local isPlain, held = isPlainQueue(), redis.call('MGET', unpack(names))
  for n, entry in ipairs(plain) do
    local slot, answer, lock = each[entry.at], answers[entry.at], held[2 * n - 1]
    local fetches = slot.nextOwner ~= ''
    local isDone = entry.isRepeated and not lock and not exists(bull .. slot.jobId)
    local fetched = isDone and fetches and findFetched(slot.token)
    local isUsual = (isPlain or not fetches) and not (anyRare and exists(bull .. 'dn:' .. slot.member))
    if fetched then
      answer[3] = 'finished'
      refetched[entry.at] = fetched
    elseif isUsual and (isDone or finish(slot, entry, held[2 * n], lock)) then
      answer[3] = 'finished'
      if fetches then fetching[#fetching + 1] = entry.at end
    end
  end
  if anyStalled and #unstalled > 0 then redis.call('SREM', bull .. 'stalled', unpack(unstalled)) end
end

if #plain == 0 then
  settleEnds()
  return answers
end
-- Keys at rest and finished jobs are deleted with one command. A broken key of BullMQ must not leave ends incomplete.
local isRead, broken = pcall(finishAll)
settleEnds(removed)
if not isRead then error(broken) end
for at, jobId in pairs(refetched) do handOut(answers[at], each[at], jobId) end

if #fetching > 0 then
  local popped, jobs = redis.call('ZPOPMIN', waiting, #fetching), {}
  for i = 1, #popped, 2 do jobs[#jobs + 1] = popped[i] end
  if #jobs > 0 then redis.call('LPUSH', active, unpack(jobs)) end
  for i, at in ipairs(fetching) do
    if jobs[i] then
      start(answers[at], each[at], jobs[i])
    else
      answers[at][4] = nextAt or 0
    end
  end
  -- As in BullMQ: others are woken for the jobs that are left, and places are counted from 1 in an empty queue.
  if #jobs == #fetching then redis.call('ZADD', bull .. 'marker', 0, '0') else redis.call('DEL', bull .. 'pc') end
end
settle()
return answers
