local h = redis.call('HMGET', run, 'epoch', 'status', 'slot', 'createdAt', 'cancel', 'parentWorkflow', 'parent')
if h[1] ~= epoch or ended(h[2]) then return 'fenced' end
local function enterWith(slot)
  redis.call('HSET', run, 'slot', slot)
  return 'entered'
end
local holders, line = statuses .. 'slots/' .. group, statuses .. 'slotLine/' .. group
local state = string.sub(h[3] or '', 1, 1)
if state == '+' or state == '^' then
  -- It got the slot before a repeated call.
  if h[2] == 'paused' then return 'waiting' end
  if h[2] == 'queued' then
    move(statuses, id, h[2], 'running', h[4])
    redis.call('HSET', run, 'status', 'running', 'isExecuted', '1')
  end
  return 'entered'
end
-- A parent holds its slot while it waits for its child. A child with another key needs a slot of that key.
local root = string.sub(run, 1, #run - #member)
local workflow, parent = h[6], h[7]
for _ = 1, MOST_ANCESTORS do
  if not parent or parent == '' then break end
  local p = redis.call('HMGET', root .. workflow .. '/' .. parent, 'status', 'slot', 'parentWorkflow', 'parent')
  local isHolder = p[1] and not ended(p[1]) and p[2] == '+' .. group
  if isHolder and workflow .. '/' == string.sub(member, 1, #workflow + 1) then
    redis.call('SADD', statuses .. 'slotBelow/' .. parent, id)
    return enterWith('^' .. parent)
  end
  workflow, parent = p[3], p[4]
end
redis.call('SETNX', statuses .. 'slotCount', slots)
local free = tonumber(redis.call('GET', statuses .. 'slotCount')) - redis.call('SCARD', holders)
local hasBegun = redis.call('HLEN', steps) > 0
local isWaiting = redis.call('EXISTS', line) == 1
-- A run that was under way before its workflow had slots takes one even if none is free, and so does a retried one that only
-- undoes its steps.
local isFirst = free > 0 and not isWaiting and h[2] == 'running' and (hasBegun or not h[5])
if (hasBegun and (not h[3] or h[5])) or isFirst then
  redis.call('SADD', holders, id)
  return enterWith('+' .. group)
end
if h[5] and not hasBegun then return 'cancelled' end
if isPaused(h[2]) then
  acknowledgePause(run, id, statuses, h[4])
  redis.call('HSET', run, 'pausedFrom', 'queued', 'slot', '')
else
  redis.call('ZADD', line, h[4], id)
  redis.call('SADD', statuses .. 'slotLines', group)
  if free > 0 then redis.call('SADD', statuses .. 'slotRests', group) end
  move(statuses, id, h[2], 'queued', h[4])
  redis.call('HSET', run, 'status', 'queued', 'slot', '?' .. group)
end
if not hasBegun then redis.call('HDEL', run, 'startedAt') end
redis.call('HSET', run, 'isExecuted', '', 'died', '', 'reason', '', 'waitingUntil', '', 'waits', '', 'awaited', '')
redis.call('ZREM', wakes, id)
return 'waiting'
