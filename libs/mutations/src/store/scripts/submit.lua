local answers = {}
for i, new in ipairs(each) do
  local key = root .. '/mutation/' .. new.id
  local waiting = root .. '/waiting/' .. new.object
  local known = redis.call('HGET', key, 'text')
  if known then
    answers[i] = known
  elseif redis.call('ZCARD', waiting) >= MAX_WAITING then
    answers[i] = 'full'
  elseif (tonumber(redis.call('GET', root .. '/bytes') or '0')) + #new.text > MAX_WAITING_BYTES then
    answers[i] = 'memory'
  else
    local number = redis.call('INCR', sequence)
    redis.call('HSET', key, 'text', new.text, 'group', new.group, 'object', new.object, 'state', 'waiting',
      'number', number, 'createdAt', int(now))
    if new.kept ~= '' then redis.call('HSET', key, 'kept', new.kept) end
    redis.call('INCRBY', root .. '/bytes', #new.text)
    redis.call('ZADD', waiting, number, new.id)
    redis.call('ZADD', root .. '/index', number, new.id)
    redis.call('ZADD', root .. '/of/' .. new.object, number, new.id)
    redis.call('ZADD', root .. '/objects', 'NX', int(now + GRACE_MS), new.object)
    if new.deadlineMs > 0 then redis.call('ZADD', root .. '/deadlines', int(now + new.deadlineMs), new.id) end
    answers[i] = 'created'
  end
end
return answers
