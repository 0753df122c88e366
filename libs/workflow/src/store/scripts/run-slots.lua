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
local function freeSlot(statuses, wakes, run, id, slot)
  local state, group = string.sub(slot or '', 1, 1), string.sub(slot or '', 2)
  if state == '?' then leaveSlotLine(statuses, run, id, slot) end
  if state ~= '+' then return {} end
  redis.call('HSET', run, 'slot', '')
  redis.call('SREM', statuses .. 'slots/' .. group, id)
  return passSlots(statuses, wakes, string.sub(run, 1, #run - #id), group)
end
