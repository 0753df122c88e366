local h = redis.call('HMGET', run, 'epoch', 'status')
if h[1] ~= epoch or ended(h[2]) then return 'fenced' end
for _, refused in ipairs(each) do
  if dropSignal(run, signals, signalNames, name, refused.seq) then
    redis.call('HINCRBY', run, 'refusedCount', 1)
    redis.call('LPUSH', refusals, refused.text)
  end
end
redis.call('LTRIM', refusals, 0, MOST_REFUSALS - 1)
return 'refused'
