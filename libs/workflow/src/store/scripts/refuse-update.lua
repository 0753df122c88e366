local h = redis.call('HMGET', run, 'epoch', 'status')
if h[1] ~= epoch or ended(h[2]) then return 'fenced' end
if dropSignal(run, signals, signalNames, name, seq) then
  redis.call('HSET', answers, id, refusal)
  redis.call('RPUSH', refusedIds, id)
  if redis.call('LLEN', refusedIds) > MOST_ANSWERED then
    redis.call('HDEL', answers, redis.call('LPOP', refusedIds))
  end
  for _, key in ipairs({ answers, refusedIds }) do redis.call('PEXPIRE', key, ANSWERS_KEPT_MS) end
end
return 'refused'
