local h = redis.call('HMGET', lane, 'holder', 'untilMs', 'carry', 'carryAtMs', 'strangerAtMs', 'wanted')
local holder, untilMs = h[1] or '', tonumber(h[2]) or 0

if mode == 'renew' and holder ~= process then return { 'lost' } end
if holder ~= '' and holder ~= process and untilMs > now then
  if not redis.call('LPOS', waiting, process) then redis.call('RPUSH', waiting, process) end
  redis.call('PEXPIRE', waiting, 10 * holdMs)
  if rank < (tonumber(h[6]) or math.huge) then redis.call('HSET', lane, 'wanted', rank) end
  return { 'wait', untilMs - now }
end
redis.call('HSET', lane, 'holder', process, 'untilMs', now + holdMs)
redis.call('PEXPIRE', lane, 10 * holdMs)
if mode == 'renew' then return { 'held', '', 0, h[6] or '' } end
redis.call('LREM', waiting, 0, process)
redis.call('HDEL', lane, 'wanted')
local ageMs = now - (tonumber(h[4]) or 0)
local longestMs = carryMs
if now - (tonumber(h[5]) or 0) < strangerMs then longestMs = contestedCarryMs end
if not h[3] or ageMs > longestMs then return { 'held', '', 0, '' } end
return { 'held', h[3], ageMs, '' }
