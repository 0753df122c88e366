-- How long another pump is elected, and whether its queue had no active job at its last round; 0 if the election is this
-- owner's or nobody's. A longer time than an election comes from another clock.
local function electedFor(text)
  local holder, state, untilMs = string.match(text or '', '^([^%s/]+)(%S*) (%d+)$')
  if not holder or holder == owner then return 0, false end
  local leftMs = tonumber(untilMs) - now
  return leftMs > 0 and leftMs <= electMs and leftMs or 0, state == IDLE
end
