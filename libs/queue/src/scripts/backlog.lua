-- Returns since when the key waits, 0 in backoff, and whether more than resyncs requested it.
local function waitOf(jobId)
  local member = redis.call('HGET', bull .. jobId, 'deid')
  if not member then return 0, false end
  local h = redis.call('HMGET', hashes .. member, 'pending', 'ask', 'hold', 'nextAt', 'woken')
  local ask = readAsk(h[2])
  local isAsked = (tonumber(h[1]) or 0) > 0
  local since = isAsked and tonumber(ask.since) or 0
  local backsOff = h[3] and h[3] ~= ''
  if backsOff and h[5] ~= '1' then since = math.max(since, tonumber(h[4]) or 0) end
  local isChange = backsOff or false
  if isAsked then
    for trigger in string.gmatch(ask.triggers, '[^\n]+') do
      if not string.find(trigger, '"kind":"resync"', 1, true) then isChange = true end
    end
  end
  return since, isChange
end

local function age(since) return since == 0 and 0 or math.max(0, now - since) end

local headAge, changeAge, found = 0, 0, false
for i, jobId in ipairs(redis.call('ZRANGE', waiting, 0, most - 1)) do
  local since, isChange = waitOf(jobId)
  if i == 1 then headAge = age(since) end
  if isChange and not found then changeAge, found = age(since), true end
  if found then break end
end
return {
  redis.call('ZCARD', index),
  redis.call('ZCARD', dead),
  redis.call('ZCARD', parked),
  headAge,
  changeAge,
}
