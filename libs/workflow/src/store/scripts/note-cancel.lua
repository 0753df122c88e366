local function noteCancel(run, wakes, cancelling, id, request, again)
  local h = redis.call('HMGET', run, 'cancel', 'cancelledAt', 'failing')
  if h[3] then return 'compensating' end
  if again then redis.call('HINCRBY', run, 'cancelCalls', 1) end
  if h[1] and not (again and h[2]) then
    -- The next execution passes the cancellation to the children that the run waits for.
    if again then
      redis.call('HINCRBY', run, 'wakeSeq', 1)
      redis.call('ZADD', wakes, 'LT', now + GRACE_MS, id)
    end
    return 'pending'
  end
  local number = redis.call('HINCRBY', run, 'cancels', 1)
  redis.call('HSET', run, 'cancel', request)
  redis.call('HDEL', run, 'cancelledAt')
  redis.call('HINCRBY', run, 'wakeSeq', 1)
  redis.call('HSET', cancelling, id, '{"number":' .. int(number) .. ',"request":' .. request .. '}')
  redis.call('ZADD', wakes, 'LT', now + GRACE_MS, id)
  return 'requested'
end
