local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local h = redis.call('HMGET', formatKey, 'format', 'olderAt')
-- Another worker has raised it, or Redis has lost it.
if not h[1] or tonumber(h[1]) >= newest then return tonumber(h[1]) or 0 end
for _, text in ipairs(redis.call('HVALS', workers)) do
  local worker = cjson.decode(text)
  if worker.seenAtMs + ttlMs > now and (tonumber(worker.format) or old) < newest then
    redis.call('HSET', formatKey, 'olderAt', string.format('%d', now))
    return tonumber(h[1])
  end
end
if not h[2] then
  redis.call('HSET', formatKey, 'olderAt', string.format('%d', now))
  return tonumber(h[1])
end
if now - tonumber(h[2]) < holdMs then return tonumber(h[1]) end
redis.call('HSET', formatKey, 'format', newest)
redis.call('HDEL', formatKey, 'olderAt')
return newest
