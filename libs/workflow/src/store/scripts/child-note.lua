local CHILD_ACTIVE, CHILD_ENDED = '{"attempts":0,"untilMs":0}', '{"attempts":0,"untilMs":0,"childEnded":true}'
local function noteChildActive(parentRun, round, parentSteps, step)
  local h = redis.call('HMGET', parentRun, 'status', 'round')
  if not h[1] or ended(h[1]) or (h[2] or '') ~= round or redis.call('HEXISTS', parentSteps, step) == 1 then return end
  redis.call('HSET', parentSteps, step .. '~', CHILD_ACTIVE)
end
local function noteChildEnd(steps, member, run)
  local h = redis.call('HMGET', run, 'parentWorkflow', 'parent', 'parentStep', 'parentRound')
  if not h[3] or h[3] == '' then return end
  local parent = h[1] .. '/' .. h[2]
  local root = string.sub(run, 1, #run - #member)
  local p = redis.call('HMGET', root .. parent, 'round', 'status')
  if not p[2] or ended(p[2]) or (p[1] or '') ~= (h[4] or '') then return end
  local parentSteps = string.sub(steps, 1, #steps - #member) .. parent
  if redis.call('HEXISTS', parentSteps, h[3] .. '~') == 1 then
    redis.call('HSET', parentSteps, h[3] .. '~', CHILD_ENDED)
    redis.call('HINCRBY', root .. parent, 'wakeSeq', 1)
    redis.call('ZADD', string.sub(root, 1, #root - 4) .. 'wakes/' .. h[1], 'LT', now + GRACE_MS, h[2])
  end
end
