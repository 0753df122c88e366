local text = redis.call('HGET', schedules, field)
local entry = text and cjson.decode(text) or { name = name, times = times, doneMs = nowMs }
entry.workflow, entry.seenMs, entry.nextMs = workflow, nowMs, nextMs
redis.call('HSET', schedules, field, cjson.encode(entry))
return int(entry.doneMs)
