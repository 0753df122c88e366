-- Dead-letters a key, unless a request during its attempt would release it. Returns whether it did.
local function deadLetter(dead, key, member, pending, death, versions)
  local h = redis.call('HMGET', key, 'run', 'revision', 'ask')
  local revision = string.match(h[1] or '', '^%d+\n[^\n]*\n%d\n%d+\n[^\n]*\n([^\n]*)\n') or ''
  local isUrged = pending and pending ~= '0' and readAsk(h[3]).class == 1
  if isUrged or isOtherRevision(h[2] or '', revision, versions) then
    redis.call('HSET', key, 'failures', '0', 'conflicts', '0')
    return false
  end
  redis.call('HSET', key, 'dead', '1', 'death', death, 'deadRevision', revision, 'deadVersions', versions)
  redis.call('ZADD', dead, 0, member)
  return true
end
