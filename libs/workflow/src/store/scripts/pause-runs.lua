local answers = {}
for i, one in ipairs(each) do
  local run = runRoot .. one.id
  local h = redis.call('HMGET', run, 'status', 'createdAt', 'isExecuted', 'pause', 'slot')
  local status = h[1]
  if not status then
    answers[i] = 'missing'
  elseif ended(status) then
    answers[i] = 'ended'
  elseif isPaused(status) then
    -- The same request again, since a lost connection repeats the call.
    answers[i] = h[4] == request and status or 'unchanged'
  elseif wanted ~= '' and wanted ~= status then
    answers[i] = 'changed'
  else
    local isActive = status == 'running' or (status == 'compensating' and h[3] ~= '')
    answers[i] = isActive and 'pausing' or 'paused'
    move(statuses, one.id, status, answers[i], h[2])
    redis.call('HSET', run, 'status', answers[i], 'pause', request, 'pausedAt', int(now), 'pausedFrom', status)
    if not isActive then
      -- It waits for a slot again once it is resumed.
      if string.sub(h[5] or '', 1, 1) == '?' then leaveSlotLine(statuses, run, one.id, h[5]) end
      redis.call('ZREM', wakes, one.id)
      redis.call('ZREM', rechecks, one.id)
    end
  end
end
return answers
