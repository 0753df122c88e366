import { defineScript, type Script } from "@konverge/redis";
import { fairTagLua } from "./fair-tag.ts";

/**
 * Stores how attempts ended and gives their leases back. Fenced: when another epoch has taken over, nothing is changed.
 *
 * KEYS: 1 timers (sorted set), 2 fair (hash), 3 ageing (sorted set); then per attempt key hash and attempt stream.
 * ARGV: 1 attempts kept per key, 2 retention in ms; then per attempt 13: key, epoch, owner, outcome, counting (reset,
 * failure, conflict, uncount, keep), final (1 or 0), hold ("", backoff, deferred), delay in ms, timer in ms or "", dead
 * (1 or 0), error code, error message, record.
 * Answer, per attempt: { "stored" or "fenced", priority of the job that waits from now on, or 0 }. The same end twice is
 * stored once.
 */
export const endScript: Script = defineScript(
  "end",
  fairTagLua +
    String.raw`
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local fair, ageing = KEYS[2], KEYS[3]
local kept, retentionMs = ARGV[1], ARGV[2]
local function int(text) return tonumber(text) or 0 end

local function finish(key, stream, at)
  local member, epoch, owner, outcome, counting = ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3], ARGV[at + 4]
  local final, hold, delayMs, timerMs = ARGV[at + 5] == '1', ARGV[at + 6], ARGV[at + 7], ARGV[at + 8]
  local h = redis.call('HMGET', key, 'epoch', 'owner', 'covered', 'class', 'attempts', 'failures', 'conflicts',
    'startedAt', 'worker', 'runGeneration', 'generation', 'pending', 'lost', 'outcome', 'tag')
  local pending = int(h[12])
  if h[1] ~= epoch then return { 'fenced', 0 } end
  -- Closed already: by this same end, or by a begin that took the attempt for lost.
  if h[2] ~= owner then
    if h[2] ~= '' or h[14] == 'lost' then return { 'fenced', 0 } end
    local class = pending > 0 and int(h[4]) or 3
    return { 'stored', final and 0 or priorityOf(int(h[15]), readFair(fair, class, member).base, class) }
  end

  local priority = 0
  local set = { 'owner', '', 'outcome', outcome, 'endedAt', now }
  local size = #set
  local function put(field, value)
    set[size + 1], set[size + 2] = field, value
    size = size + 2
  end
  if h[13] and h[13] ~= '0' then put('lost', 0) end
  if counting == 'reset' then
    put('attempts', 0)
    if h[6] and h[6] ~= '0' then put('failures', 0) end
    if h[7] and h[7] ~= '0' then put('conflicts', 0) end
  elseif counting == 'failure' then put('failures', int(h[6]) + 1)
  elseif counting == 'conflict' then put('conflicts', int(h[7]) + 1)
  elseif counting == 'uncount' then put('attempts', math.max(0, int(h[5]) - 1))
  end
  if final then put('finished', h[3]) end
  if hold ~= '' then
    put('hold', hold)
    put('nextAt', now + math.floor(tonumber(delayMs)))
  end
  if not final then
    -- What was requested meanwhile has its place already; without, the retry takes one in the flow of retries.
    local class = pending > 0 and int(h[4]) or 3
    local state = readFair(fair, class, member)
    local tag = pending > 0 and tonumber(h[15]) or nil
    if not tag then
      tag = takeTag(fair, state)
      put('tag', tag)
    end
    priority = priorityOf(tag, state.base, class)
    redis.call('ZADD', ageing, now + math.floor(tonumber(delayMs)), member)
  end
  if ARGV[at + 9] == '1' then
    local generation = h[10] or ''
    put('deadGeneration', generation)
    if (h[11] or '') == generation then put('dead', '1') end
  end
  if outcome == 'gone' then put('gone', '1') end
  redis.call('HSET', key, unpack(set))
  if timerMs ~= '' then redis.call('ZADD', KEYS[1], 'LT', now + math.floor(tonumber(timerMs)), member) end
  local entry = { 'XADD', stream, 'MAXLEN', '~', kept, '*', 'epoch', epoch, 'covered', h[3], 'outcome', outcome,
    'startedAt', h[8], 'worker', h[9], 'record', ARGV[at + 12] }
  if ARGV[at + 10] ~= '' then
    local last = #entry
    entry[last + 1], entry[last + 2] = 'errorCode', ARGV[at + 10]
    entry[last + 3], entry[last + 4] = 'errorMessage', ARGV[at + 11]
  end
  redis.call(unpack(entry))
  redis.call('PEXPIRE', stream, retentionMs)
  if outcome == 'gone' and pending == 0 then redis.call('PEXPIRE', key, retentionMs) end
  return { 'stored', priority }
end

local answers = {}
for i = 1, (#KEYS - 3) / 2 do answers[i] = finish(KEYS[2 * i + 2], KEYS[2 * i + 3], 3 + (i - 1) * 13) end
return answers
`,
);
