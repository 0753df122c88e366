import { defineScript, type Script } from "./script.ts";

/** Values of `begin` that are the same for all attempts of a call, before those of each attempt. */
export const BEGIN_COMMON = 4;

/**
 * Takes the key lease for attempts that are about to start. Several at once, because each call has a fixed cost.
 *
 * KEYS: per attempt, key hash and attempt stream.
 * ARGV: 1 lease in ms, 2 worker, 3 attempts kept per key, 4 retention in ms; then per attempt its owner: a text that no
 * other attempt has. The same owner twice gets the same answer, since a lost connection repeats the call.
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

local function recordLost(stream, h)
  local triggers = string.gsub(h.runTriggers, '\n', ',')
  local record = '{"outcome":"lost","epoch":' .. h.epoch .. ',"worker":' .. cjson.encode(h.worker) ..
    ',"startedAtMs":' .. h.startedAt .. ',"triggers":[' .. triggers .. ']}'
  redis.call('XADD', stream, 'MAXLEN', '~', kept, '*', 'epoch', h.epoch, 'covered', h.covered, 'outcome', 'lost',
    'startedAt', h.startedAt, 'worker', h.worker, 'record', record)
  redis.call('PEXPIRE', stream, retentionMs)
end

local names = { 'owner', 'leaseUntil', 'epoch', 'number', 'pending', 'finished', 'class', 'since', 'triggers', 'floor',
  'generation', 'attempts', 'failures', 'conflicts', 'lost', 'dead', 'covered', 'runClass', 'runTriggers', 'runFloor',
  'runSince', 'startedAt', 'worker' }
local function read(key)
  local values = redis.call('HMGET', key, unpack(names))
  local h = {}
  for i, name in ipairs(names) do h[name] = values[i] or '' end
  return h
end
local function int(text) return tonumber(text) or 0 end

local function begin(key, stream, owner)
  local h = read(key)
  local failures, lost = int(h.failures), int(h.lost)
  if h.owner ~= '' then
    if h.owner == owner then
      return { 'run', int(h.epoch), int(h.attempts), failures, int(h.conflicts), h.runTriggers, h.runFloor,
        int(h.runSince), int(h.startedAt), int(h.runClass) }
    end
    if int(h.leaseUntil) > now then return { 'busy', int(h.leaseUntil) - now } end
    failures, lost = failures + 1, lost + 1
    recordLost(stream, h)
    if lost >= 2 then
      redis.call('HSET', key, 'owner', '', 'outcome', 'lost', 'failures', failures, 'lost', lost, 'hold', 'backoff')
      return { 'backoff', failures }
    end
  end
  local number, pending, finished = int(h.number), int(h.pending), int(h.finished)
  if h.dead == '1' then
    if h.owner ~= '' then redis.call('HSET', key, 'owner', '', 'failures', failures, 'lost', lost) end
    return { 'dead' }
  end
  if pending == 0 and number > 0 and finished >= number and h.owner == '' then return { 'covered' } end

  local epoch, attempts = int(h.epoch) + 1, int(h.attempts) + 1
  local class = pending > 0 and int(h.class) or 3
  local since = now
  if finished < int(h.covered) then since = int(h.runSince) elseif pending > 0 then since = int(h.since) end
  redis.call('HSET', key, 'owner', owner, 'leaseUntil', now + leaseMs, 'epoch', epoch, 'worker', worker,
    'startedAt', now, 'covered', number, 'runClass', class, 'runSince', since, 'runTriggers', h.triggers,
    'runFloor', h.floor, 'runGeneration', h.generation, 'attempts', attempts, 'failures', failures, 'lost', lost,
    'pending', 0, 'news', '', 'triggers', '', 'triggerCount', 0, 'floor', '', 'hold', '', 'nextAt', '')
  return { 'run', epoch, attempts, failures, int(h.conflicts), h.triggers, h.floor, since, now, class }
end

local answers = {}
for i = 1, #KEYS / 2 do answers[i] = begin(KEYS[2 * i - 1], KEYS[2 * i], ARGV[4 + i]) end
return answers
`,
);
