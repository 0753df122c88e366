local ACTIONS_KEPT = 200
local function noteAt(note, now) return '{"atMs":' .. now .. ',' .. string.sub(note, 2) end
local function logAction(actions, note)
  redis.call('LPUSH', actions, note)
  redis.call('LTRIM', actions, 0, ACTIONS_KEPT - 1)
end
