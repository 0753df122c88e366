local h = redis.call('HMGET', formatKey, 'format', 'olderAt', 'checkedAt')
-- Another worker has raised it, or Redis has lost it.
if not h[1] or tonumber(h[1]) >= newest then return tonumber(h[1]) or 0 end
local at = string.format('%d', now)
redis.call('HSET', formatKey, 'checkedAt', at)
-- Without newer workers for some time, as after a rollback, older ones may have been alive.
local isOlder = not h[2] or now - (tonumber(h[3]) or 0) > math.max(ttlMs, holdMs / 24)
for _, text in ipairs(redis.call('HVALS', workers)) do
  local worker = cjson.decode(text)
  if worker.seenAtMs + ttlMs > now and (tonumber(worker.format) or old) < newest then isOlder = true end
end
if isOlder then
  redis.call('HSET', formatKey, 'olderAt', at)
  return tonumber(h[1])
end
if now - tonumber(h[2]) < holdMs then return tonumber(h[1]) end
redis.call('HSET', formatKey, 'format', newest)
redis.call('HDEL', formatKey, 'olderAt', 'checkedAt')
return newest
