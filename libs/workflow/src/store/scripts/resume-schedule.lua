if redis.call('HDEL', pauses, name) == 0 then return 0 end
local entries = redis.call('HGETALL', schedules)
for at = 1, #entries, 2 do
  local entry = cjson.decode(entries[at + 1])
  if entry.name == name and entry.doneMs < nowMs then
    entry.doneMs = nowMs
    redis.call('HSET', schedules, entries[at], cjson.encode(entry))
  end
end
return 1
