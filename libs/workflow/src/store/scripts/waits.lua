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
