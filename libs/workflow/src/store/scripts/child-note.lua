local CHILD_ACTIVE, CHILD_ENDED = '{"attempts":0,"untilMs":0}', '{"attempts":0,"untilMs":0,"childEnded":true}'
local function noteChildActive(parentRun, parentSteps, step)
  local status = redis.call('HGET', parentRun, 'status')
  if not status or ended(status) or redis.call('HEXISTS', parentSteps, step) == 1 then return end
  redis.call('HSET', parentSteps, step .. '~', CHILD_ACTIVE)
end
local function noteChildEnd(steps, member, run)
  local h = redis.call('HMGET', run, 'parentWorkflow', 'parent', 'parentStep')
  if not h[3] or h[3] == '' then return end
  local parentSteps = string.sub(steps, 1, #steps - #member) .. h[1] .. '/' .. h[2]
  if redis.call('HEXISTS', parentSteps, h[3] .. '~') == 1 then
    redis.call('HSET', parentSteps, h[3] .. '~', CHILD_ENDED)
  end
end
