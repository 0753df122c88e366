-- Written once for all requests of the call: changed flows, new members of the index and of the aging set.
local flows, indexed, waitsSince = {}, {}, {}
-- The number of keys that waited before the call, read on demand.
local before

local function flowOf(class, member)
  local name = class .. ':' .. tenantOf(member)
  if not flows[name] then flows[name] = readFair(fair, class, member) end
  return flows[name]
end

local function nextTag(state)
  state.last, state.moved = tagOf(state), true
  return state.last
end

local function note(list, score, member)
  list[#list + 1] = score
  list[#list + 1] = member
end

local function request(item, left)
  local key, member, class, version, revision = item.key, item.member, item.class, item.version, item.revision
  local hash = redis.call('HMGET', key, 'number', 'pending', 'ask', 'hold', 'dead', 'deadRevision', 'gone', 'owner',
    'finished', 'deadVersions')
  local number, pending, hold = (tonumber(hash[1]) or 0) + 1, tonumber(hash[2]) or 0, hash[4] or ''
  if item.most ~= '' and pending == 0 and hold == '' and (hash[8] or '') == '' and (tonumber(hash[9]) or 0) >= number - 1 then
    before = before or redis.call('ZCARD', parked) + redis.call('ZCARD', bullWaiting) - added
    if before + added >= tonumber(item.most) then return { 0, before + added } end
  end

  local ask, waiting = nil, 0
  if pending > 0 then
    ask = readAsk(hash[3])
    waiting = ask.class
  else
    ask = { class = class, since = nowText, news = '0', floor = '-', count = 0, triggers = '' }
  end
  if class < ask.class then ask.class = class end
  if item.news then ask.news = '1' end
  if string.find(version, '^[1-9]%d*$') then
    local floor = ask.floor
    if floor == '-' or #version > #floor or (#version == #floor and version > floor) then ask.floor = version end
  end
  if ask.count >= cap then
    local cut = string.find(ask.triggers, '\n', 1, true)
    ask.triggers, ask.count = cut and string.sub(ask.triggers, cut + 1) or '', ask.count - 1
  end
  ask.triggers = ask.count > 0 and (ask.triggers .. '\n' .. item.trigger) or item.trigger
  ask.count = ask.count + 1

  local state = flowOf(ask.class, member)
  -- A more urgent class sets its own place, unless the key's place is better.
  if waiting == 0 or (class < waiting and tagOf(state) < ask.tag) then ask.tag = nextTag(state) end

  local isGone, numberText, waits = hash[7] == '1', string.format('%d', number), string.format('%d', pending + 1)
  if revision == '' then
    redis.call('HSET', key, 'number', numberText, 'pending', waits, 'ask', writeAsk(ask))
  else
    redis.call('HSET', key, 'number', numberText, 'pending', waits, 'ask', writeAsk(ask), 'revision', revision)
  end
  if hash[5] == '1' and (class == 1 or isOtherRevision(revision, hash[6] or '', hash[10] or '')) then
    redis.call('HSET', key, 'dead', '', 'failures', '0', 'conflicts', '0', 'lost', '0')
    redis.call('ZREM', dead, member)
  end
  if isGone then
    redis.call('HSET', key, 'gone', '')
    redis.call('PERSIST', key)
  end
  if number == 1 or isGone then note(indexed, '0', member) end
  -- Without waiting requests, the key does not age.
  if pending == 0 and (ask.class > 2 or ask.tag - state.v > AGING_BACKLOG) then
    note(waitsSince, nowText, member)
  end

  local wake = item.news and wakes(key, hold, class, now)
  local raised = class < waiting or (hold ~= '' and class < 3)
  -- A waiting job that no request waits for has the place of cancelled requests or of a retry.
  local isFirst = pending == 0
  addJob(bull, member, priorityOf(ask.tag, state.base, ask.class), wake, raised, isFirst, nowText, left)
  return { number, pending > 0 and 1 or 0 }
end

local answers = {}
for i, item in ipairs(each) do
  local ok, answer = pcall(request, item, #each - i + 1)
  answers[i] = (ok or type(answer) == 'table') and answer or redis.error_reply(answer)
end
for _, state in pairs(flows) do
  if state.moved then redis.call('HSET', fair, state.flow, state.last) end
end
if #indexed > 0 then redis.call('ZADD', index, unpack(indexed)) end
if #waitsSince > 0 then redis.call('ZADD', aging, unpack(waitsSince)) end
announceJobs(bull)
return answers
