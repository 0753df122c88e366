local REST = '^(%d+),(%d*),(%d*),(%d),(%a*),(%d+),(%d*),(%d),?([^,]*)$'
-- Lists are trimmed and their expiry renewed occasionally; doing so each time would cost as much as the entry. The expiry of a
-- list is at most an eighth too early: it is renewed each 8th attempt, and after a pause.
local SLACK, REFRESH_EVERY, REFRESH_AFTER_MS = 8, 8, retentionMs / 64
local function memberOf(key) return string.match(key, '^.-}/key/(.*)$') end
local function askOf(key, pending)
  if not pending or pending == '0' then return nil end
  return readAsk(redis.call('HGET', key, 'ask'))
end
local function place(key, base, ask)
  if ask then return priorityOf(ask.tag, base, ask.class) end
  return priorityOf(tonumber(redis.call('HGET', key, 'retryTag')) or 0, base, 3)
end

-- The place of a key that waits for its retry: that of the requests made meanwhile, else a new one.
local function wait(key, member, pending, hold, delayMs)
  if hold ~= '' then redis.call('HSET', key, 'hold', hold, 'nextAt', now + delayMs) end
  local state, ask = readFair(fair, 3, member), askOf(key, pending)
  if not ask then redis.call('HSET', key, 'retryTag', takeTag(fair, state)) end
  redis.call('ZADD', aging, now + delayMs, member)
  return place(key, state.base, ask)
end

-- Fields of keys that come to rest. A hash without long values takes a fifth of the memory, but Redis does not convert a large
-- one back, so it is deleted first.
local resting, fieldsOf = {}, {}

local function keepAtRest(key, fields, kept)
  for i, name in ipairs({ 'revision', 'cancels', 'conflicts', 'newsTokens', 'newsAt' }) do
    local value = kept[i]
    if value and value ~= '' and value ~= '0' then
      fields[#fields + 1] = name
      fields[#fields + 1] = value
    end
  end
  resting[#resting + 1], fieldsOf[key] = key, fields
end

-- Must follow the calls of endAttempt. Also deletes the keys in "others".
local function settleEnds(others)
  local rests = resting
  resting = {}
  for _, key in ipairs(others or {}) do rests[#rests + 1] = key end
  if #rests == 0 then return end
  redis.call('DEL', unpack(rests))
  for key, fields in pairs(fieldsOf) do redis.call('HSET', key, unpack(fields)) end
  fieldsOf = {}
end

local function endAttempt(attempt)
  local key, list, epoch, outcome, rest = attempt.key, attempt.list, attempt.epoch, attempt.outcome, attempt.rest
  local attempts, failures, conflicts, isFinal, hold, delayMs, timerMs, isDead, versions = '0', '', '', '1', '', '0', '', '0', ''
  if rest ~= '' then
    attempts, failures, conflicts, isFinal, hold, delayMs, timerMs, isDead, versions = string.match(rest, REST)
  end
  local final = isFinal == '1'
  if fieldsOf[key] then settleEnds() end
  local h = redis.call('HMGET', key, 'epoch', 'owner', 'pending', 'lost', 'endedAt', 'number', 'covered', 'failures', 'revision',
    'cancels', 'conflicts', 'newsTokens', 'newsAt')
  if h[1] ~= epoch then return 'fenced', 0 end
  if anyAbort and redis.call('HGET', aborts, memberOf(key)) == epoch then
    redis.call('HDEL', aborts, memberOf(key))
    final = true
  end
  -- Already closed: by this same end, or by a begin that counted the attempt as lost.
  if h[2] ~= attempt.owner then
    if h[2] ~= '' or redis.call('HGET', key, 'outcome') == 'lost' then return 'fenced', 0 end
    if final then return 'stored', 0, true end
    return 'stored', place(key, readFair(fair, 3, memberOf(key)).base, askOf(key, h[3])), true
  end

  local priority, failuresLeft = 0, failures ~= '' and failures or h[8] or '0'
  if final and h[3] == '0' and failuresLeft == '0' and isDead == '0' and outcome ~= 'gone' then
    local fields = { 'owner', '', 'pending', '0', 'outcome', outcome, 'endedAt', nowText, 'attempts', attempts, 'finished',
      attempt.covered, 'epoch', epoch, 'number', h[6] or '0', 'covered', h[7] or '0' }
    keepAtRest(key, fields, { h[9], h[10], conflicts ~= '' and conflicts or h[11], h[12], h[13] })
    failures, conflicts, h[4] = '', '', nil
  elseif final then
    redis.call('HSET', key, 'owner', '', 'outcome', outcome, 'endedAt', nowText, 'attempts', attempts, 'finished',
      attempt.covered)
  else
    redis.call('HSET', key, 'owner', '', 'outcome', outcome, 'endedAt', nowText, 'attempts', attempts)
    priority = wait(key, memberOf(key), h[3], hold, tonumber(delayMs))
  end
  if failures ~= '' then redis.call('HSET', key, 'failures', failures) end
  if conflicts ~= '' then redis.call('HSET', key, 'conflicts', conflicts) end
  if h[4] and h[4] ~= '0' then redis.call('HSET', key, 'lost', '0') end
  if isDead == '1' then
    deadLetter(dead, key, memberOf(key), h[3], nowText .. '\n' .. string.match(attempt.entry, '^[^\n]*'), versions)
  end
  local length = redis.call('LPUSH', list, nowText .. '\n' .. attempt.entry)
  if length > kept + SLACK then redis.call('LTRIM', list, 0, kept - 1) end
  if length == 1 or tonumber(epoch) % REFRESH_EVERY == 0 or now - (tonumber(h[5]) or 0) > REFRESH_AFTER_MS then
    redis.call('PEXPIRE', list, retentionMs)
  end
  if timerMs ~= '' then redis.call('ZADD', timers, 'LT', now + tonumber(timerMs), memberOf(key)) end
  if outcome == 'gone' then
    redis.call('HSET', key, 'gone', '1')
    if h[3] == '0' then
      redis.call('PEXPIRE', key, retentionMs)
      redis.call('ZREM', index, memberOf(key))
      redis.call('ZREM', timers, memberOf(key))
    end
  end
  return 'stored', priority, false
end
