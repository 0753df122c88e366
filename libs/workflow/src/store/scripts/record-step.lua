local function findRecord(run, steps, epoch, step)
  local h = redis.call('HMGET', run, 'epoch', 'status')
  if h[1] ~= epoch then return { 'fenced' } end
  local known = redis.call('HMGET', steps, step, step .. '~')
  if known[1] then return { 'exists', known[1] } end
  -- Keys of an ended run have an expiry, which new ones would lack.
  if ended(h[2]) then return { 'fenced' } end
  return nil, h[2] == 'pausing' and h[2] or nil, known[2]
end
local function recordStep(run, steps, step, record, progress)
  local seq = int(redis.call('HINCRBY', run, 'seq', 1))
  local text = string.sub(record, 1, -2) .. ',"seq":' .. seq .. ',"atMs":' .. int(now) .. '}'
  redis.call('HSET', steps, step, text)
  if progress then redis.call('HDEL', steps, step .. '~') end
  return text, seq
end
