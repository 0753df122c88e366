local leaseUntil = string.format('%d', now + leaseMs)
local aged, highest = {}, 0
-- Root of the cluster's or shard's names, and the key.
local KEY_HASH = '^(.-}/)key/(.*)$'
local isRestored = oldestMs > 0 and tonumber(redis.call('HGET', progress, work) or '0') < oldestMs

local function num(text) return tonumber(text) or 0 end
-- A kind without generation keeps its failures: its resourceVersion changes with each write, also of the handler.
local function isOtherGeneration(one, other)
  return string.gsub(one, '@.*', '') ~= string.gsub(other, '@.*', '')
end
local function memberOf(key) return select(2, string.match(key, KEY_HASH)) end
local function readRun(text)
  local startedAt, by, since, revision, triggers =
    string.match(text or '', '^(%d+)\n([^\n]*)\n%d\n(%d+)\n[^\n]*\n([^\n]*)\n(.*)$')
  return { startedAt = startedAt or '0', worker = by or '', since = since or '0', revision = revision or '',
    triggers = triggers or '' }
end

-- A run stores its trace context for its retries, with its number; it is void after the run has finished.
local function traceOf(left, finished)
  local number, trace = string.match(left or '', '^(%d+) (.+)$')
  if number and num(number) > finished then return trace end
end

-- The caller's trace context if there is one, because callers look for their trace, else the oldest.
local function findTrace(triggers, kinds)
  for _, kind in ipairs(kinds) do
    local trace = string.match(triggers, '"kind":"' .. kind .. '"[^\n]-"traceparent":"([%x-]+)"')
    if trace then return trace end
  end
end

-- Returns the first line of its entry.
local function recordLost(key, epoch, covered, code, message)
  local root, id = string.match(key, KEY_HASH)
  local list = root .. 'attempts/' .. id
  local run = readRun(redis.call('HGET', key, 'run'))
  local by = cjson.encode(run.worker)
  local log = string.match(redis.call('GET', root .. 'log/' .. id) or '', '^' .. epoch .. '\n(.+)$')
  local record = '{"outcome":"lost","epoch":' .. epoch .. ',"worker":' .. by .. ',"attempt":' ..
    (redis.call('HGET', key, 'attempts') or '1') .. ',"requestedAtMs":' .. run.since .. ',"startedAtMs":' .. run.startedAt ..
    ',"triggers":[' .. string.gsub(run.triggers, '\n', ',') .. ']' ..
    (log and ',"log":' .. log or '') .. '}'
  local meta = '[' .. epoch .. ',' .. covered .. ',' .. run.startedAt .. ',"lost",' .. by .. ',"' .. code .. '","' .. message ..
    '"]'
  redis.call('LPUSH', list, nowText .. '\n' .. meta .. '\n' .. record)
  redis.call('LTRIM', list, 0, kept - 1)
  redis.call('PEXPIRE', list, retentionMs)
  -- The search index is the stream "records" under the same root; attempts that end are added by their workers.
  -- A shard, whose tag has a slash before it, cannot reach the index; the record of the key must suffice.
  if string.find(root, '{[^}]*/[^}]*}') then return meta end
  local index = root .. 'records'
  local row = '[' .. cjson.encode(id) .. ',' .. epoch .. ',"lost","",[],[],' .. run.startedAt .. ',' ..
    math.max(0, now - run.startedAt) .. ',0,0,0,' .. by .. ']'
  local last = redis.call('XREVRANGE', index, '+', '-', 'COUNT', 1)[1]
  local sum = (last and tonumber(last[2][4]) or 0) + #row + #record + 300
  redis.call('XADD', index, '*', 'r', row, 's', string.format('%.0f', sum))
  return meta
end

-- The times in which a key was parked, in ms: "from-to", with spaces; the last one has no end until the key is resumed.
local function park(key, times)
  if string.sub(times, -1) == '-' then return end
  if #times > MOST_PARK_CHARS then times = string.gsub(times, '^%S+ ', '', 1) end
  redis.call('HSET', key, 'parks', (times == '' and '' or times .. ' ') .. nowText .. '-')
end

local function runOf(counters, run, trace, isQuiet, parks)
  if not isQuiet and parks == '' then return { 'run', counters, run, trace } end
  return { 'run', counters, run, trace or '', (isQuiet and '1 ' or '0 ') .. parks }
end

local function begin(key, owner)
  local h = redis.call('HMGET', key, 'owner', 'number', 'pending', 'finished', 'epoch', 'attempts', 'failures',
    'conflicts', 'ask', 'hold', 'lost', 'dead', 'covered', 'revision', 'parks', 'quiet')
  local open = h[1] and h[1] ~= ''
  local failures, conflicts, covered, lost, lostInARow = h[7] or '0', h[8] or '0', h[13] or '0', 0, num(h[11])
  if open then
    if h[1] == owner then
      local past = redis.call('HMGET', key, 'run', 'runTrace')
      local counters = h[5] .. ' ' .. h[6] .. ' ' .. failures .. ' ' .. conflicts .. ' ' .. covered
      if lostInARow > 0 then counters = counters .. ' 0 ' .. lostInARow end
      return runOf(counters, past[1], traceOf(past[2], num(h[4])), h[16] == '1', h[15] or '')
    end
  end
  if isRestored then return { 'held' } end
  if open then
    local leftMs = num(redis.call('HGET', key, 'leaseUntil')) - now
    if leftMs > 0 then return { 'busy', leftMs } end
    failures = string.format('%d', num(failures) + 1)
    -- A suspect that still waited for its turn did not crash its worker.
    local hadTurn = lostInARow < SUSPECT_FROM or redis.call('HGET', key, 'turn') == h[5]
    lost = hadTurn and lostInARow + 1 or lostInARow
    lostInARow = lost
    local isLast = hadTurn and lost >= maxLost
    local entry = recordLost(key, h[5], covered, isLast and LOST_CODE or '', isLast and string.format(LOST_MESSAGE, lost) or '')
    redis.call('HSET', key, 'owner', '', 'outcome', 'lost', 'failures', failures, 'lost', lost)
    if redis.call('HGET', aborts, memberOf(key)) == h[5] then
      -- Cancelled while its worker died: no request is left.
      redis.call('HDEL', aborts, memberOf(key))
      redis.call('HSET', key, 'finished', covered)
      h[4], open = covered, false
    elseif isLast and deadLetter(dead, key, memberOf(key), h[3], nowText .. '\n' .. entry, '') then
      redis.call('HSET', key, 'finished', covered)
      return { 'dead', lost }
    elseif isLast then
      -- A user requested the key again, so it runs alone.
      failures, lostInARow = '0', SUSPECT_FROM
      redis.call('HSET', key, 'lost', SUSPECT_FROM)
    elseif lost >= SUSPECT_FROM then
      redis.call('HSET', key, 'hold', 'backoff')
      redis.call('ZADD', aging, 'NX', now, memberOf(key))
      return { 'backoff', failures, nowText, lost }
    end
  end
  if h[12] == '1' then return { 'dead', 0 } end
  local number, finished, pending = h[2] or '0', num(h[4]), h[3] and h[3] ~= '0'
  -- The number is higher if waiting requests were cancelled.
  if not pending and h[2] and finished >= num(covered) and not open then
    if finished < num(number) then redis.call('HSET', key, 'covered', number, 'finished', number) end
    return { 'covered' }
  end
  if anyPause then
    local member = memberOf(key)
    if isPaused(pauses, member) then
      redis.call('ZADD', parked, 0, member)
      redis.call('ZREM', aging, member)
      park(key, h[15] or '')
      return { 'paused' }
    end
  end

  local class, since, tag, floor, triggers
  if pending then
    class, since, tag, floor, triggers = string.match(h[9] or '', ASK_OF_RUN)
  else
    tag = redis.call('HGET', key, 'retryTag')
  end
  -- A retry has the age of its requests.
  local trace
  local isRetry = finished < num(covered)
  if isRetry then
    local past = redis.call('HMGET', key, 'run', 'runTrace')
    since, trace = readRun(past[1]).since, traceOf(past[2], finished)
  end
  tag = num(tag)
  if tag > highest then highest = tag end
  -- Keys of a backlog age regardless of their class. Idle queues are not swept, so the key must not remain.
  aged[#aged + 1] = memberOf(key)
  if failures ~= '0' and isOtherGeneration(readRun(redis.call('HGET', key, 'run')).revision, h[14] or '') then
    failures = '0'
    redis.call('HSET', key, 'failures', failures)
  end
  local epoch, attempts = string.format('%d', num(h[5]) + 1), string.format('%d', num(h[6]) + 1)
  local run = nowText .. '\n' .. worker .. '\n' .. (class or '3') .. '\n' .. (since or nowText) .. '\n' .. (floor or '-') ..
    '\n' .. (h[14] or '') .. '\n' .. (triggers or '')
  redis.call('HSET', key, 'owner', owner, 'leaseUntil', leaseUntil, 'epoch', epoch, 'covered', number, 'attempts',
    attempts, 'run', run, 'pending', '0')
  if h[10] and h[10] ~= '' then redis.call('HSET', key, 'hold', '', 'nextAt', '', 'woken', '') end
  if triggers and string.find(triggers, '"traceparent"', 1, true) then
    local left = trace
    trace = findTrace(triggers, { 'http', 'cli', 'signal' }) or left or findTrace(triggers, { '%l+' })
    if trace and trace ~= left then redis.call('HSET', key, 'runTrace', number .. ' ' .. trace) end
  end
  -- Requested by resyncs alone since the last success.
  local isQuiet = (not pending or class == '4') and (not isRetry or h[16] == '1')
  if isQuiet ~= (h[16] == '1') then redis.call('HSET', key, 'quiet', isQuiet and '1' or '') end
  local parks = h[15] or ''
  if string.sub(parks, -1) == '-' then
    parks = parks .. nowText
    redis.call('HSET', key, 'parks', parks)
  end
  local counters = epoch .. ' ' .. attempts .. ' ' .. failures .. ' ' .. conflicts .. ' ' .. number
  if lostInARow > 0 then counters = counters .. ' ' .. lost .. ' ' .. lostInARow end
  return runOf(counters, run, trace, isQuiet, parks)
end

-- Places and ages of the keys that began.
local function settle()
  if #aged > 0 then redis.call('ZREM', aging, unpack(aged)) end
  if highest > (tonumber(redis.call('HGET', fair, 'v')) or 0) then redis.call('HSET', fair, 'v', highest) end
end
