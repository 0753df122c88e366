local answers = {}
for i, one in ipairs(each) do
  local run = runRoot .. one.id
  local status = redis.call('HGET', run, 'status')
  if not status then
    answers[i] = 'missing'
  elseif ended(status) then
    answers[i] = 'ended'
  elseif not isPaused(status) then
    answers[i] = 'unchanged'
  elseif wanted ~= '' and wanted ~= status then
    answers[i] = 'changed'
  else
    endPause(run, one.id, statuses, wakes)
    answers[i] = 'resumed'
  end
end
return answers
