local text = redis.call('HGET', schedules, field)
if not text then return 0 end
local entry = cjson.decode(text)
if entry.doneMs >= dueMs then return 0 end
entry.doneMs = dueMs
if run ~= '' then entry.run = run end
redis.call('HSET', schedules, field, cjson.encode(entry))
return 1
