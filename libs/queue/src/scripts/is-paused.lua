local function isPaused(pauses, member)
  local namespace = string.match(member, '^[^/]*/[^/]*/[^/]*/([^/]*)/') or '_'
  local h = redis.call('HMGET', pauses, '*', 'n/' .. namespace, 'k/' .. member)
  return h[1] or h[2] or h[3]
end
