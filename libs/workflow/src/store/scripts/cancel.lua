local status = redis.call('HGET', run, 'status')
if not status then return 'missing' end
if ended(status) then return 'ended' end
return noteCancel(run, wakes, cancelling, id, request, true)
