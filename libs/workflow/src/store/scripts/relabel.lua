local h = redis.call('HMGET', run, 'epoch', 'status', 'createdAt')
if h[1] ~= epoch or ended(h[2]) then return 'fenced' end
redis.call('HSET', run, 'labels', labels)
relabel(statuses, id, labels, h[3])
return 'labelled'
