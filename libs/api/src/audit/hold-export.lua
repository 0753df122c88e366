local held = redis.call('HMGET', export, 'holder', 'until')
if held[1] and held[1] ~= holder and tonumber(held[2]) > now then return { 'held' } end
redis.call('HSET', export, 'holder', holder, 'until', string.format('%.0f', now + leaseMs))
for _, moved in ipairs(each) do redis.call('HSET', export, moved.chain, moved.cursor) end
local cursors = redis.call('HMGET', export, 'changes', 'refused')
return { 'mine', cursors[1] or '', cursors[2] or '' }
