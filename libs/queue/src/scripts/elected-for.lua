-- Returns the remaining time of another pump's election, in ms (0 if there is none), and true if the queue had no active job
-- at that pump's last round. An election that ends later than electMs from now comes from another clock and is ignored.
local function electedFor(text)
  local holder, state, untilMs = string.match(text or '', '^([^%s/]+)(%S*) (%d+)$')
  if not holder or holder == owner then return 0, false end
  local leftMs = tonumber(untilMs) - now
  return leftMs > 0 and leftMs <= electMs and leftMs or 0, state == IDLE
end
