local h = redis.call('HMGET', run, 'epoch', 'watched', 'status')
if h[1] ~= epoch or ended(h[3]) then return 'fenced' end
local known, watched = {}, h[2] or ''
for object in string.gmatch(watched, '%S+') do known[object] = true end
for object in string.gmatch(objects, '%S+') do
  if not known[object] then
    known[object] = true
    watched = watched == '' and object or watched .. ' ' .. object
    enterWait(waitRoot, waitKinds, object, member)
  end
end
redis.call('HSET', run, 'watched', watched)
redis.call('ZADD', rechecks, now + RECHECK_MS, id)
return 'watched'
