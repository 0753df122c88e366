local found = { '' }
local ids = redis.call('ZREVRANGEBYSCORE', index, before, '-inf', 'LIMIT', 0, MAX_SCANNED)
for at, id in ipairs(ids) do
  local row = redis.call('HMGET', root .. '/mutation/' .. id, 'text', 'state', 'createdAt', 'endedAt', 'result', 'number')
  if row[1] and (state == '' or row[2] == state) then
    for field = 1, 5 do found[#found + 1] = row[field] or '' end
  end
  local isLast = at == #ids and #ids < MAX_SCANNED
  if not isLast and row[6] and ((#found - 1) / 5 >= limit or at == #ids) then
    found[1] = '(' .. row[6]
    break
  end
end
return found
