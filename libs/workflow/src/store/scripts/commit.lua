local h = redis.call('HMGET', run, 'epoch', 'status')
if h[1] ~= epoch then return { 'fenced' } end
local known = redis.call('HGET', steps, step)
if known then return { 'exists', known } end
-- Keys of an ended run have an expiry, which new ones would lack.
if ended(h[2]) then return { 'fenced' } end
if taken ~= '' and not dropSignal(run, signals, signalNames, takenName, taken) then return { 'taken' } end
local seq = redis.call('HINCRBY', run, 'seq', 1)
local text = string.sub(record, 1, -2) .. ',"seq":' .. int(seq) .. ',"atMs":' .. int(now) .. '}'
redis.call('HSET', steps, step, text)
redis.call('HDEL', steps, step .. '~')
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
return { 'committed', text, h[2] == 'pausing' and h[2] or nil }
