local function leaveSlotLine(statuses, run, id, slot)
  local group = string.sub(slot, 2)
  redis.call('ZREM', statuses .. 'slotLine/' .. group, id)
  redis.call('HSET', run, 'slot', '')
  if redis.call('EXISTS', statuses .. 'slotLine/' .. group) == 0 then
    redis.call('SREM', statuses .. 'slotLines', group)
  end
end
local function passSlots(statuses, wakes, runRoot, group)
  local slots, line = statuses .. 'slots/' .. group, statuses .. 'slotLine/' .. group
  local free = (tonumber(redis.call('GET', statuses .. 'slotCount') or '') or math.huge) - redis.call('SCARD', slots)
  local given = {}
  while #given < free and #given < MOST_GIVEN do
    local id = redis.call('ZPOPMIN', line)[1]
    if not id then break end
    -- A run that was deleted by hand has no fields.
    if redis.call('HGET', runRoot .. id, 'slot') == '?' .. group then
      redis.call('SADD', slots, id)
      redis.call('HSET', runRoot .. id, 'slot', '+' .. group)
      redis.call('ZADD', wakes, now + GRACE_MS, id)
      given[#given + 1] = id
    end
  end
  if redis.call('EXISTS', line) == 0 then
    redis.call('SREM', statuses .. 'slotLines', group)
  elseif #given < free then
    redis.call('SADD', statuses .. 'slotRests', group)
  end
  return given
end
local function inheritSlot(statuses, runRoot, id, group)
  local root, below = string.match(runRoot, '^(.*/)[^/]+/$'), {}
  for _, other in ipairs(redis.call('SMEMBERS', statuses .. 'slotBelow/' .. id)) do
    if redis.call('HGET', runRoot .. other, 'slot') == '^' .. id then below[other] = true end
  end
  redis.call('DEL', statuses .. 'slotBelow/' .. id)
  for other in pairs(below) do
    local heir, key = other, runRoot .. other
    for _ = 1, MOST_ANCESTORS do
      local h = redis.call('HMGET', key, 'parentWorkflow', 'parent')
      if not h[2] or h[2] == '' then break end
      key = root .. h[1] .. '/' .. h[2]
      if key == runRoot .. h[2] and below[h[2]] then heir = h[2] end
    end
    redis.call('HSET', runRoot .. other, 'slot', heir == other and '+' .. group or '^' .. heir)
    redis.call('SADD', statuses .. (heir == other and 'slots/' .. group or 'slotBelow/' .. heir), other)
  end
end
local function freeSlot(statuses, wakes, run, id, slot)
  local state, group = string.sub(slot or '', 1, 1), string.sub(slot or '', 2)
  if state == '?' then leaveSlotLine(statuses, run, id, slot) end
  if state == '^' then redis.call('SREM', statuses .. 'slotBelow/' .. group, id) end
  if state ~= '+' then return {} end
  local runRoot = string.sub(run, 1, #run - #id)
  redis.call('HSET', run, 'slot', '')
  redis.call('SREM', statuses .. 'slots/' .. group, id)
  inheritSlot(statuses, runRoot, id, group)
  return passSlots(statuses, wakes, runRoot, group)
end
