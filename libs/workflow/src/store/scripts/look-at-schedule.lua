local text = redis.call('HGET', schedules, field)
local entry = text and cjson.decode(text) or { name = name, times = times, doneMs = nowMs }
local isPaused = redis.call('HEXISTS', pauses, name)
entry.spec, entry.seenMs, entry.nextMs = spec, nowMs, nextMs
if isPaused == 1 and entry.doneMs < nowMs then entry.doneMs = nowMs end
redis.call('HSET', schedules, field, cjson.encode(entry))
return { int(entry.doneMs), isPaused }
