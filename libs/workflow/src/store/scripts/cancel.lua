local status = redis.call('HGET', run, 'status')
if not status then return 'missing' end
if ended(status) then return 'ended' end
local answer = noteCancel(run, wakes, cancelling, id, request, true)
if not resumes or not isPaused(status) or answer == 'compensating' then return answer end
endPause(run, id, statuses, wakes)
return 'requested'
