local function lineFrom(last, runRoot, most)
  local line, seen, at = {}, {}, last
  while at and at ~= '' and not seen[at] and #line < most do
    seen[at] = true
    local found = redis.call('HMGET', runRoot .. at, 'status', 'after')
    if found[1] and not ended(found[1]) then line[#line + 1] = at end
    at = found[2]
  end
  return line
end
