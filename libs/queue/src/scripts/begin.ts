import { defineScript, type Script } from "@konverge/redis";

/**
 * Takes the key lease for attempts that are about to start. Several at once, because each call has a fixed cost.
 *
 * KEYS: 1 fair (hash), 2 ageing (sorted set); then per attempt key hash and attempt stream.
 * ARGV: 1 lease in ms, 2 worker, 3 attempts kept per key, 4 retention in ms; then per attempt its key and its owner: a
 * text that no other attempt has. The same owner twice gets the same answer, since a lost connection repeats the call.
 * Answer, per attempt:
 * - { "run", epoch, attempt, failures, conflicts, triggers, floor, requestedAt, startedAt, class }
 * - { "busy", ms left of another epoch's lease }
 * - { "backoff", failures }: an epoch never ended, not for the first time in a row
 * - { "dead" }: refused until a person asks or the generation changes; what was requested stays
 * - { "covered" }: nothing was requested since the last finished attempt began
 */
export const beginScript: Script = defineScript(
  "begin",
  String.raw`
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local leaseMs, worker, kept, retentionMs = tonumber(ARGV[1]), ARGV[2], ARGV[3], ARGV[4]
local aged, highest = {}, 0

local function int(text) return tonumber(text) or 0 end

-- What only the rare paths need is read by them: a no-op reconcile consists of little but this script and its sister.
local function readRun(key)
  local h = redis.call('HMGET', key, 'epoch', 'attempts', 'conflicts', 'covered', 'startedAt', 'worker', 'runClass',
    'runSince', 'runFloor', 'runTriggers')
  for i = 1, 10 do h[i] = h[i] or '' end
  return h
end

local function replay(key, failures)
  local h = readRun(key)
  return { 'run', int(h[1]), int(h[2]), failures, int(h[3]), h[10], h[9], int(h[8]), int(h[5]), int(h[7]) }
end

local function recordLost(key, stream)
  local h = readRun(key)
  local triggers = string.gsub(h[10], '\n', ',')
  local record = '{"outcome":"lost","epoch":' .. h[1] .. ',"worker":' .. cjson.encode(h[6]) ..
    ',"startedAtMs":' .. h[5] .. ',"triggers":[' .. triggers .. ']}'
  redis.call('XADD', stream, 'MAXLEN', '~', kept, '*', 'epoch', h[1], 'covered', h[4], 'outcome', 'lost',
    'startedAt', h[5], 'worker', h[6], 'record', record)
  redis.call('PEXPIRE', stream, retentionMs)
  -- The search index is the stream "records" under the same root; attempts that end are added by their workers.
  local slash = string.find(stream, '}/attempts/', 1, true)
  -- Of a shard, whose tag has a slash before it, the index is elsewhere: there the record of the key must do.
  if string.find(string.sub(stream, 1, slash), '{[^}]*/[^}]*}') then return end
  local index, id = string.sub(stream, 1, slash + 1) .. 'records', string.sub(stream, slash + 11)
  local row = '[' .. cjson.encode(id) .. ',' .. h[1] .. ',"lost","",[],[],' .. h[5] .. ',' .. math.max(0, now - h[5]) ..
    ',0,0,0,' .. cjson.encode(h[6]) .. ']'
  local last = redis.call('XREVRANGE', index, '+', '-', 'COUNT', 1)[1]
  local sum = (last and tonumber(last[2][4]) or 0) + #row + #record + 300
  redis.call('XADD', index, '*', 'r', row, 's', string.format('%.0f', sum))
end

local function begin(key, stream, member, owner)
  local h = redis.call('HMGET', key, 'owner', 'number', 'pending', 'finished', 'epoch', 'attempts', 'failures',
    'conflicts', 'class', 'since', 'triggers', 'floor', 'generation', 'hold', 'lost', 'dead', 'covered', 'tag')
  local open = h[1] and h[1] ~= ''
  local number, pending, finished = int(h[2]), int(h[3]), int(h[4])
  local failures, lost = int(h[7]), int(h[15])
  if open then
    if h[1] == owner then return replay(key, failures) end
    local leftMs = int(redis.call('HGET', key, 'leaseUntil')) - now
    if leftMs > 0 then return { 'busy', leftMs } end
    failures, lost = failures + 1, lost + 1
    recordLost(key, stream)
    redis.call('HSET', key, 'owner', '', 'outcome', 'lost', 'failures', failures, 'lost', lost)
    if lost >= 2 then
      redis.call('HSET', key, 'hold', 'backoff')
      return { 'backoff', failures }
    end
  end
  if h[16] == '1' then return { 'dead' } end
  if pending == 0 and number > 0 and finished >= number and not open then return { 'covered' } end

  local epoch, attempts = int(h[5]) + 1, int(h[6]) + 1
  local class = pending > 0 and int(h[9]) or 3
  local triggers, floor = h[11] or '', h[12] or ''
  local since = now
  local set = { 'owner', owner, 'leaseUntil', now + leaseMs, 'epoch', epoch, 'worker', worker, 'startedAt', now,
    'covered', number, 'attempts', attempts, 'runClass', class, 'runTriggers', triggers, 'runFloor', floor,
    'runGeneration', h[13] or '' }
  local size = #set
  local function put(field, value)
    set[size + 1], set[size + 2] = field, value
    size = size + 2
  end
  if finished < int(h[17]) then
    since = redis.call('HGET', key, 'runSince')
  elseif pending > 0 then
    since = h[10]
  end
  put('runSince', since)
  if pending > 0 then
    put('pending', 0)
    put('news', '')
    put('triggers', '')
    put('triggerCount', 0)
    if floor ~= '' then put('floor', '') end
  end
  if h[14] and h[14] ~= '' then
    put('hold', '')
    put('nextAt', '')
    put('woken', '')
  end
  redis.call('HSET', key, unpack(set))
  local tag = tonumber(h[18]) or 0
  if tag > highest then highest = tag end
  if class > 2 then aged[#aged + 1] = member end
  return { 'run', epoch, attempts, failures, int(h[8]), triggers, floor, int(since), now, class }
end

local answers = {}
for i = 1, #KEYS / 2 - 1 do
  answers[i] = begin(KEYS[2 * i + 1], KEYS[2 * i + 2], ARGV[3 + 2 * i], ARGV[4 + 2 * i])
end
if #aged > 0 then redis.call('ZREM', KEYS[2], unpack(aged)) end
if highest > (tonumber(redis.call('HGET', KEYS[1], 'v')) or 0) then redis.call('HSET', KEYS[1], 'v', highest) end
return answers
`,
);
