local answers = {}
for i, call in ipairs(each) do
  local known, pausing, progress = findRecord(call.run, call.steps, call.epoch, call.step)
  if known then
    answers[i] = known
  else
    local _, seq = recordStep(call.run, call.steps, call.step, call.record, progress)
    answers[i] = { 'committed', seq, pausing }
  end
end
return { int(now), answers }
