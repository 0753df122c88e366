import { defineScript, type Script } from "@konverge/redis";
import { askLua } from "./ask.ts";
import { pauseLua } from "./pause.ts";

const beginLua =
  askLua +
  pauseLua +
  String.raw`
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local worker, kept, retentionMs = ARGV[2], tonumber(ARGV[3]), ARGV[4]
local nowText, leaseUntil = string.format('%d', now), string.format('%d', now + tonumber(ARGV[1]))
local aged, highest = {}, 0
-- Root of the cluster's or shard's names, and key.
local KEY_HASH = '^(.-}/)key/(.*)$'
local anyPause = redis.call('EXISTS', KEYS[3]) == 1

local function int(text) return tonumber(text) or 0 end
local function memberOf(key) return select(2, string.match(key, KEY_HASH)) end
local function readRun(text)
  local startedAt, by, since, generation, triggers =
    string.match(text or '', '^(%d+)\n([^\n]*)\n%d\n(%d+)\n[^\n]*\n([^\n]*)\n(.*)$')
  return { startedAt = startedAt or '0', worker = by or '', since = since or '0', generation = generation or '',
    triggers = triggers or '' }
end

-- A run leaves its trace context for its retries, with its number: one that is finished left it for nobody.
local function traceOf(left, finished)
  local number, trace = string.match(left or '', '^(%d+) (.+)$')
  if number and int(number) > finished then return trace end
end

-- Of a caller where there is one, since callers look for their trace; else of the oldest that has one.
local function findTrace(triggers, kinds)
  for _, kind in ipairs(kinds) do
    local trace = string.match(triggers, '"kind":"' .. kind .. '"[^\n]-"traceparent":"([%x-]+)"')
    if trace then return trace end
  end
end

local function recordLost(key, epoch, covered)
  local root, id = string.match(key, KEY_HASH)
  local list = root .. 'attempts/' .. id
  local run = readRun(redis.call('HGET', key, 'run'))
  local by = cjson.encode(run.worker)
  local record = '{"outcome":"lost","epoch":' .. epoch .. ',"worker":' .. by .. ',"attempt":' ..
    (redis.call('HGET', key, 'attempts') or '1') .. ',"requestedAtMs":' .. run.since .. ',"startedAtMs":' .. run.startedAt ..
    ',"triggers":[' .. string.gsub(run.triggers, '\n', ',') .. ']}'
  local meta = '[' .. epoch .. ',' .. covered .. ',' .. run.startedAt .. ',"lost",' .. by .. ',"",""]'
  redis.call('LPUSH', list, nowText .. '\n' .. meta .. '\n' .. record)
  redis.call('LTRIM', list, 0, kept - 1)
  redis.call('PEXPIRE', list, retentionMs)
  -- The search index is the stream "records" under the same root; attempts that end are added by their workers.
  -- Of a shard, whose tag has a slash before it, the index is elsewhere: there the record of the key must do.
  if string.find(root, '{[^}]*/[^}]*}') then return end
  local index = root .. 'records'
  local row = '[' .. cjson.encode(id) .. ',' .. epoch .. ',"lost","",[],[],' .. run.startedAt .. ',' ..
    math.max(0, now - run.startedAt) .. ',0,0,0,' .. by .. ']'
  local last = redis.call('XREVRANGE', index, '+', '-', 'COUNT', 1)[1]
  local sum = (last and tonumber(last[2][4]) or 0) + #row + #record + 300
  redis.call('XADD', index, '*', 'r', row, 's', string.format('%.0f', sum))
end

local function begin(key, owner)
  local h = redis.call('HMGET', key, 'owner', 'number', 'pending', 'finished', 'epoch', 'attempts', 'failures',
    'conflicts', 'ask', 'hold', 'lost', 'dead', 'covered', 'generation')
  local open = h[1] and h[1] ~= ''
  local failures, conflicts, covered, lost = h[7] or '0', h[8] or '0', h[13] or '0', 0
  if open then
    if h[1] == owner then
      local past = redis.call('HMGET', key, 'run', 'runTrace')
      return { 'run', h[5] .. ' ' .. h[6] .. ' ' .. failures .. ' ' .. conflicts .. ' ' .. covered, past[1],
        traceOf(past[2], int(h[4])) }
    end
    local leftMs = int(redis.call('HGET', key, 'leaseUntil')) - now
    if leftMs > 0 then return { 'busy', leftMs } end
    failures = string.format('%d', int(failures) + 1)
    lost = int(h[11]) + 1
    recordLost(key, h[5], covered)
    redis.call('HSET', key, 'owner', '', 'outcome', 'lost', 'failures', failures, 'lost', lost)
    if redis.call('HGET', KEYS[5], memberOf(key)) == h[5] then
      -- Cancelled while it was dying: nobody is left to run it for.
      redis.call('HDEL', KEYS[5], memberOf(key))
      redis.call('HSET', key, 'finished', covered)
      h[4], open = covered, false
    elseif lost >= 2 then
      redis.call('HSET', key, 'hold', 'backoff')
      redis.call('ZADD', KEYS[2], 'NX', now, memberOf(key))
      return { 'backoff', failures, nowText, lost }
    end
  end
  if h[12] == '1' then return { 'dead' } end
  local number, finished, pending = h[2] or '0', int(h[4]), h[3] and h[3] ~= '0'
  -- The number is higher when what waited was withdrawn.
  if not pending and h[2] and finished >= int(covered) and not open then
    if finished < int(number) then redis.call('HSET', key, 'covered', number, 'finished', number) end
    return { 'covered' }
  end
  if anyPause then
    local member = memberOf(key)
    if isPaused(KEYS[3], member) then
      redis.call('ZADD', KEYS[4], 0, member)
      redis.call('ZREM', KEYS[2], member)
      return { 'paused' }
    end
  end

  local class, since, tag, floor, triggers
  if pending then
    class, since, tag, floor, triggers = string.match(h[9] or '', ASK_OF_RUN)
  else
    tag = redis.call('HGET', key, 'retryTag')
  end
  -- A retry is as old as what it tries to fulfil.
  local trace
  if finished < int(covered) then
    local past = redis.call('HMGET', key, 'run', 'runTrace')
    since, trace = readRun(past[1]).since, traceOf(past[2], finished)
  end
  tag = int(tag)
  if tag > highest then highest = tag end
  if not class or class > '2' then aged[#aged + 1] = memberOf(key) end
  if failures ~= '0' and readRun(redis.call('HGET', key, 'run')).generation ~= (h[14] or '') then
    failures = '0'
    redis.call('HSET', key, 'failures', failures)
  end
  local epoch, attempts = string.format('%d', int(h[5]) + 1), string.format('%d', int(h[6]) + 1)
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
  local counters = epoch .. ' ' .. attempts .. ' ' .. failures .. ' ' .. conflicts .. ' ' .. number
  return { 'run', lost > 0 and counters .. ' ' .. lost or counters, run, trace }
end

-- Places and ages of what began.
local function settle()
  if #aged > 0 then redis.call('ZREM', KEYS[2], unpack(aged)) end
  if highest > (tonumber(redis.call('HGET', KEYS[1], 'v')) or 0) then redis.call('HSET', KEYS[1], 'v', highest) end
end
`;

/**
 * Takes the key lease for attempts that are about to start. Several at once, because each call has a fixed cost.
 *
 * KEYS: 1 fair (hash), 2 ageing (sorted set), 3 pauses (hash), 4 parked (sorted set), 5 aborts (hash); then per attempt its
 * key hash. Its list of attempts is named after that.
 * ARGV: 1 lease in ms, 2 worker, 3 attempts kept per key, 4 retention in ms; then per attempt its owner: a text that no
 * other attempt has. The same owner twice gets the same answer, since a lost connection repeats the call.
 * Answer, per attempt:
 * - { "run", "epoch attempt failures conflicts covered", run, the trace context of a request if any }; behind covered, where an
 *   epoch has just been found that never ended, how many of them there were in a row. Failures of another generation are not
 *   counted; conflicts are, since who writes the generations may be who wins the races
 * - { "busy", ms left of another epoch's lease }
 * - { "backoff", failures, now in ms, epochs in a row that never ended }: not for the first time in a row
 * - { "dead" }: refused until a person asks or the generation changes; what was requested stays
 * - { "covered" }: nothing was requested since the last finished attempt began, or a person has withdrawn it
 * - { "paused" }: what was requested stays, and the key is parked until the pause is ended. Where nothing is paused that costs
 *   one EXISTS a call
 *
 * `run` is a field of the key hash as well: startedAt, worker, class, since (when the oldest request that it covers was
 * made), floor or "-", generation, a line each; then the triggers. Numbers are kept as texts where they are only handed
 * on: Redis takes longer to write a number of Lua's than to do anything else here.
 */
export const beginScript: Script = defineScript(
  "begin",
  beginLua +
    String.raw`
local answers = {}
for i = 1, #KEYS - 5 do answers[i] = begin(KEYS[i + 5], ARGV[i + 4]) end
settle()
return answers
`,
);

/**
 * Begins the jobs that BullMQ has just handed to slots of this worker, found by their locks: sent behind BullMQ's finishes of
 * the jobs before them, so that a reconcile takes one round trip and not two.
 *
 * KEYS: 1 to 5 as above, 6 BullMQ's active list, newest first.
 * ARGV: 1 to 4 as above, 5 root of BullMQ's keys, 6 root of key hashes, 7 how far to look; then per slot its owner, its lock
 * token, and the job that is being finished.
 * Answer, per slot: { job, key, answer as above }, or nothing when it got no job or its job is not near the head any more.
 *
 * Names of key hashes and jobs are built here; they share the hash tag of KEYS.
 */
export const beginNextScript: Script = defineScript(
  "begin-next",
  beginLua +
    String.raw`
local jobs, locks, slots, answers = redis.call('LRANGE', KEYS[6], 0, tonumber(ARGV[7])), {}, {}, {}
for i, jobId in ipairs(jobs) do locks[i] = ARGV[5] .. jobId .. ':lock' end
for i = 8, #ARGV, 3 do
  slots[ARGV[i + 1]] = i
  answers[(i - 5) / 3] = {}
end
if #locks == 0 then return answers end
for i, token in ipairs(redis.call('MGET', unpack(locks))) do
  local at = token and slots[token]
  if at and ARGV[at + 2] ~= jobs[i] then
    local member = redis.call('HGET', ARGV[5] .. jobs[i], 'deid')
    if member then
      local answer = begin(ARGV[6] .. member, ARGV[at])
      answers[(at - 5) / 3] = { jobs[i], member, unpack(answer) }
    end
    slots[token] = nil
  end
end
settle()
return answers
`,
);
