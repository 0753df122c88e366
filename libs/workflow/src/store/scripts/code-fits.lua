local function liveCodes(codes)
  local live, dead, all = {}, {}, redis.call('HGETALL', codes)
  for at = 1, #all, 2 do
    local seenAt, code = string.match(all[at + 1], '^(%d+) (.*)$')
    if tonumber(seenAt) > now - CODE_TTL_MS then live[all[at]] = code else dead[#dead + 1] = all[at] end
  end
  return live, dead
end
local function codeFits(code, version, continuedBy)
  if not string.find(',' .. code .. ',', ',' .. version .. ',', 1, true) then return false end
  return (tonumber(continuedBy or '') or 0) <= tonumber(string.match(code, '^%d+'))
end
local function liveCodeFits(codes, version, continuedBy)
  for _, code in pairs(liveCodes(codes)) do
    if codeFits(code, version, continuedBy) then return true end
  end
  return false
end
