local h = redis.call('HMGET', state, 'id', 'progress', 'held', 'recordedAt')
local at, held = tonumber(h[2]), h[3] or ''
local isKnown = known > 0 and (knownId == '' or knownId == h[1])
if isPartial or (isKnown and at and at < known - tolerance) then
  held = kinds
  redis.call('HSET', state, 'held', held, 'heldAt', string.format('%d', now), 'heldBy', worker,
    'lostFrom', string.format('%d', at or 0), 'lostTo', string.format('%d', known))
end
local id = h[1] or newId
local progress = string.format('%d', math.max(now, at or 0, atLeast, knownId == '' and known or 0))
local isDue = recordMs > 0 and now - (tonumber(h[4]) or 0) >= recordMs
redis.call('HSET', state, 'id', id, 'progress', progress)
if isDue then redis.call('HSET', state, 'recordedAt', string.format('%d', now)) end
return { id, progress, held, isDue and 1 or 0 }
