local live, dead = liveCodes(codes)
for _, other in ipairs(dead) do redis.call('HDEL', codes, other) end
redis.call('HSET', codes, worker, int(now) .. ' ' .. code)
if live[worker] then return {} end
if slots == '' then
  redis.call('DEL', statuses .. 'slotCount')
else
  redis.call('SET', statuses .. 'slotCount', slots)
end
-- The sweep gives the waiting runs the slots that they have now.
redis.call('SUNIONSTORE', statuses .. 'slotRests', statuses .. 'slotRests', statuses .. 'slotLines')
return redis.call('ZRANGE', blocked, 0, MAX_RECHECKED - 1)
