-- The command needs no memory and has no effect. Redis accepts all commands after it, so that attempts can end, which frees memory.
if isFull then redis.call('PERSIST', timers) end

local function exists(key) return redis.call('EXISTS', key) == 1 end

-- Keys that rarely exist. One command usually shows that none of them does.
local rare = { aborts, pauses, bull .. 'wait', bull .. 'stalled' }
for _, slot in ipairs(each) do rare[#rare + 1] = bull .. 'dn:' .. slot.member end
local anyRare = redis.call('EXISTS', unpack(rare)) > 0
local anyAbort, anyPause = anyRare and exists(aborts), anyRare and exists(pauses)
local hasWaitList, anyStalled = anyRare and exists(rare[3]), anyRare and exists(rare[4])
