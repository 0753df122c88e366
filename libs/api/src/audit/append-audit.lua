local known = redis.call('HMGET', head, 'sequence', 'hash', 'id')
local newest = redis.call('XREVRANGE', stream, '+', '-', 'COUNT', 1)
local sequence, hash, id = known[1] or '0', known[2] or '', known[3] or ''
local top = newest[1] and newest[1][1] or ''
if sequence ~= expected or hash ~= previous or top ~= expectedTop then
  return { 'moved', now, sequence, hash, id, top }
end
for _, entry in ipairs(each) do
  redis.call('XADD', stream, 'MAXLEN', '~', kept, entry.id, 'e', entry.text, 'n', entry.sequence, 'p', entry.previous,
    'h', entry.hash)
  redis.call('HSET', head, 'sequence', entry.sequence, 'hash', entry.hash, 'id', entry.id)
end
return { 'added', now }
