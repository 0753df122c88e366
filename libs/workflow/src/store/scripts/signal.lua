local h = redis.call('HMGET', run, 'status', 'signalBytes', 'awaited')
local status = h[1]
if not status then return 'missing' end
if redis.call('ZSCORE', seen, signalId) then return 'duplicate' end
if ended(status) then return 'ended' end
local text = string.sub(signal, 1, -2) .. ',"atMs":' .. int(now) .. '}'
if redis.call('HLEN', signals) >= most or tonumber(h[2] or '0') + #text > mostBytes then return 'full' end
local seq = addSignal(run, signals, signalNames, name, text)
redis.call('ZADD', seen, seq, signalId)
redis.call('ZREMRANGEBYRANK', seen, 0, -MOST_SEEN - 1)
if status == 'waiting' and string.sub(h[3] or '', 1, 1) == '\n' and not string.find(h[3] .. '\n', '\n' .. name .. '\n', 1, true) then
  return 'buffered'
end
redis.call('HINCRBY', run, 'wakeSeq', 1)
redis.call('ZADD', wakes, 'LT', now + GRACE_MS, id)
return 'stored'
