local head = redis.call('ZRANGE', waiting, 0, 0)[1]
local member = head and redis.call('HGET', bull .. head, 'deid')
if not member then return 0 end
local h = redis.call('HMGET', hashes .. member, 'pending', 'ask', 'hold', 'nextAt', 'woken')
local since = (tonumber(h[1]) or 0) > 0 and tonumber(readAsk(h[2]).since) or 0
if h[3] and h[3] ~= '' and h[5] ~= '1' then since = math.max(since, tonumber(h[4]) or 0) end
if since == 0 then return 0 end
local time = redis.call('TIME')
return math.max(0, time[1] * 1000 + math.floor(time[2] / 1000) - since)
