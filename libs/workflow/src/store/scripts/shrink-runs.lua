local function shrink(endedRuns, index, statuses, runRoot, limit, most)
  local excess = tonumber(redis.call('HGET', statuses .. 'kept', 'bytes') or '0') - limit
  if excess <= 0 then return 0 end
  local root, workflow = string.match(runRoot, '^(.*/)run/([^/]*)/$')
  local sizes, dropped = statuses .. 'sizes', 0
  for _, member in ipairs(redis.call('ZRANGEBYSCORE', sizes, '-inf', now - LEAST_KEPT_MS, 'LIMIT', 0, most)) do
    if excess <= 0 then break end
    local bytes, id = string.match(member, '^(%d+)/(.*)$')
    local h = redis.call('HMGET', runRoot .. id, 'status', 'parentWorkflow', 'parent')
    local parent = (h[3] or '') ~= '' and redis.call('HGET', root .. 'run/' .. h[2] .. '/' .. h[3], 'status')
    if parent and not ended(parent) then
      -- Its parent may still read the result.
      redis.call('ZADD', sizes, now, member)
    else
      -- A worker of an earlier version, which stores no sizes, may have resumed it.
      if not h[1] or ended(h[1]) then
        for _, what in ipairs({ 'run', 'steps', 'signals', 'signalNames', 'refusals', 'answers', 'answeredIds', 'logs', 'seen' }) do
          redis.call('UNLINK', root .. what .. '/' .. workflow .. '/' .. id)
        end
        dropRun(endedRuns, index, statuses, id)
        if h[1] then dropped = dropped + 1 end
      end
      dropSize(statuses, member)
      excess = excess - tonumber(bytes)
    end
  end
  return dropped
end
