local h = redis.call('HMGET', run, 'epoch', 'status')
if h[1] ~= epoch or ended(h[2]) then return 'fenced' end
redis.call('HSET', run, 'published', published)
return 'published'
