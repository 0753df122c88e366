local status = redis.call('HGET', run, 'status')
if not status then return 'missing' end
if ended(status) then return 'ended' end
noteCancel(run, wakes, cancelling, id, request)
return 'requested'
