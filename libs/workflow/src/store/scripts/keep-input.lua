local h = redis.call('HMGET', run, 'epoch', 'status')
if h[1] ~= epoch or ended(h[2]) then return { 'fenced' } end
redis.call('HSETNX', run, 'parsedInput', input)
return { 'kept', redis.call('HGET', run, 'parsedInput') }
