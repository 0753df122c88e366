local function noteCancel(run, wakes, cancelling, id, request)
  if redis.call('HSETNX', run, 'cancel', request) == 0 then return end
  redis.call('HINCRBY', run, 'wakeSeq', 1)
  redis.call('SADD', cancelling, id)
  redis.call('ZADD', wakes, 'LT', now + GRACE_MS, id)
end
