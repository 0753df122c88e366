local known, pausing, progress = findRecord(run, steps, epoch, step)
if known then return known end
if taken ~= '' and not dropSignal(run, signals, signalNames, takenName, taken) then return { 'taken' } end
local text = recordStep(run, steps, step, record, progress)
if update ~= '' then
  redis.call('HSET', answers, update, cjson.encode({ step = step }))
  redis.call('PEXPIRE', answers, ANSWERS_KEPT_MS)
end
if cancels ~= '' and (redis.call('HGET', run, 'cancels') or '0') == cancelNumber then
  redis.call('HSET', run, 'cancelledAt', step)
  redis.call('HDEL', cancelling, cancels)
end
if published ~= '' then redis.call('HSET', run, 'published', published) end
if code ~= '' then redis.call('HSET', run, 'continuedBy', code) end
if warnings ~= '' then redis.call('HSET', run, 'warnings', warnings) end
return { 'committed', text, pausing }
