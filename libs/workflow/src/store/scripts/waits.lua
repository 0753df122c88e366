local function partsOf(object) return string.match(object, '^([^/]*/[^/]*/[^/]*)/(.*)$') end
local function enterWait(root, kinds, object, member)
  local kind, place = partsOf(object)
  redis.call('ZADD', root .. kind, 0, place .. '/' .. member)
  redis.call('SADD', kinds, kind)
end
local function leaveWait(root, kinds, object, member)
  local kind, place = partsOf(object)
  redis.call('ZREM', root .. kind, place .. '/' .. member)
  if redis.call('EXISTS', root .. kind) == 0 then redis.call('SREM', kinds, kind) end
end
local function leaveWaits(root, kinds, rechecks, run, id, watched, objects, member)
  if not watched or watched == '' then return end
  local still = {}
  for object in string.gmatch(objects, '%S+') do still[object] = true end
  for object in string.gmatch(watched, '%S+') do
    if not still[object] then leaveWait(root, kinds, object, member) end
  end
  redis.call('HSET', run, 'watched', objects)
  if objects == '' then redis.call('ZREM', rechecks, id) else redis.call('ZADD', rechecks, now + RECHECK_MS, id) end
end
