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
  local round = redis.call('HGET', string.sub(run, 1, #run - #member) .. parent, 'round')
  if (round or '') ~= (h[4] or '') then return end
  local parentSteps = string.sub(steps, 1, #steps - #member) .. parent
  if redis.call('HEXISTS', parentSteps, h[3] .. '~') == 1 then
    redis.call('HSET', parentSteps, h[3] .. '~', CHILD_ENDED)
  end
end
