local h = redis.call('HMGET', run, 'epoch', 'status', 'lease')
if h[1] ~= epoch or ended(h[2]) then return { 'fenced' } end
local field = step .. '~'
local progress = '{"attempts":' .. attempts .. ',"untilMs":' .. int(now + delayMs)
progress = progress .. (more == '' and '}' or ',' .. string.sub(more, 2))
if keep then
  redis.call('HSETNX', steps, field, progress)
  return { 'noted', redis.call('HGET', steps, field) }
end
redis.call('HSET', steps, field, progress)
if beatAtMs ~= '' then redis.call('HSET', run, 'beatAt', beatAtMs) end
if silentMs ~= '' then redis.call('ZADD', silent, now + silentMs, id .. '\n' .. h[3] .. '\n' .. step) end
return { 'noted', progress }
