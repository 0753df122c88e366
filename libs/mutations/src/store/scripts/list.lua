local found = { '', '0' }
local ids = redis.call('ZREVRANGEBYSCORE', index, before, '-inf', 'LIMIT', 0, MAX_SCANNED)
for at, id in ipairs(ids) do
  found[2] = tostring(at)
  local key = root .. '/mutation/' .. id
  local known = redis.call('HMGET', key, 'state', 'number')
  if known[1] and (state == '' or known[1] == state) then
    local row = redis.call('HMGET', key, 'text', 'state', 'createdAt', 'endedAt', 'result')
    for field = 1, 5 do found[#found + 1] = row[field] or '' end
  end
  local isLast = at == #ids and #ids < MAX_SCANNED
  if not isLast and known[2] and ((#found - 2) / 5 >= limit or at == #ids) then
    found[1] = '(' .. known[2]
    break
  end
end
return found
