local live, dead = liveCodes(codes)
for _, other in ipairs(dead) do redis.call('HDEL', codes, other) end
redis.call('HSET', codes, worker, int(now) .. ' ' .. code)
if live[worker] then return {} end
return redis.call('ZRANGE', blocked, 0, MAX_RECHECKED - 1)
