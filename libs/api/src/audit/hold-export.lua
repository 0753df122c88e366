local held = redis.call('HMGET', export, 'holder', 'until')
if held[1] and held[1] ~= holder and tonumber(held[2]) > now then return { 'held' } end
redis.call('HSET', export, 'holder', holder, 'until', string.format('%.0f', now + leaseMs))
for _, moved in ipairs(each) do
  redis.call('HSET', export, moved.chain, moved.cursor, moved.chain .. '/sequence', moved.sequence)
  if tonumber(moved.lost) > 0 then
    redis.call('HINCRBY', export, 'lost', moved.lost)
    redis.call('HSET', export, 'lostMs', string.format('%.0f', now))
  end
end
local known = redis.call('HMGET', export, 'changes', 'refused', 'changes/sequence', 'refused/sequence')
return { 'mine', known[1] or '', known[2] or '', known[3] or '', known[4] or '' }
