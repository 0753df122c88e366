local h = redis.call('HMGET', key, 'pending', 'ask', 'hold')
if (tonumber(h[1]) or 0) == 0 or not h[3] or h[3] == '' then return 0 end
local ask = readAsk(h[2])
if ask.news ~= '1' or not wakes(key, h[3], ask.class, now) then return 0 end
return priorityOf(ask.tag, readFair(fair, ask.class, member).base, ask.class)
