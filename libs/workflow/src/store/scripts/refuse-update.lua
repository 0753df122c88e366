local h = redis.call('HMGET', run, 'epoch', 'status')
if h[1] ~= epoch or ended(h[2]) then return 'fenced' end
if dropSignal(run, signals, signalNames, name, seq) then
  redis.call('HSET', answers, id, refusal)
  redis.call('RPUSH', answeredIds, id)
  if redis.call('LLEN', answeredIds) > MOST_ANSWERED then
    redis.call('HDEL', answers, redis.call('LPOP', answeredIds))
  end
  for _, key in ipairs({ answers, answeredIds }) do redis.call('PEXPIRE', key, ANSWERS_KEPT_MS) end
end
return 'refused'
