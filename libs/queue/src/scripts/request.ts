import { defineScript, type Script } from "@konverge/redis";
import { addJobLua } from "./add-job.ts";
import { askLua } from "./ask.ts";
import { fairTagLua } from "./fair-tag.ts";
import { newsLua } from "./news.ts";

/**
 * Merges requests into the hashes of their keys and gives each key its job, in one step: an acknowledged request has a
 * job, and one that starts covers the request. Several at once, because each call has a fixed cost; one that fails does not
 * harm the others.
 *
 * KEYS: 1 fair (hash), 2 ageing, 3 index, 4 dead, 5 parked, 6 BullMQ's waiting jobs (sorted sets); then per request its key hash.
 * ARGV: 1 root of BullMQ's keys, 2 most triggers to keep; then per request 7: class (1 interactive .. 4 resync), news (1 or 0), trigger (JSON
 * without line breaks), resourceVersion or "", generation or "", key, most waiting keys or "" for no bound.
 * Answer, per request: { number, joined (1 when another request was waiting) }; or { 0, waiting keys }: refused, nothing was
 * changed; or the error that it met. Refused is only what would add a job: a key that runs, waits, or backs off has one.
 *
 * Wakes a key from its backoff only for news, and as often as its bucket allows (news.ts); a person always does.
 * A resourceVersion counts as floor only where versions compare (digits; longer is newer, KEP-5504).
 *
 * Names of jobs are built here; they share the hash tag of KEYS.
 */
export const requestScript: Script = defineScript(
  "request",
  askLua +
    fairTagLua +
    newsLua +
    addJobLua +
    String.raw`
local WIDTH = 7
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local nowText = string.format('%d', now)
local fair, ageing, bull, cap = KEYS[1], KEYS[2], ARGV[1], tonumber(ARGV[2])
-- What is written once for all requests of the call: flows that moved, new members of the index and of those that age.
local flows, indexed, waitsSince = {}, {}, {}
-- How many keys waited before the call, as soon as somebody has asked.
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

local function request(key, at, left)
  local class, news, trigger, version = tonumber(ARGV[at]), ARGV[at + 1], ARGV[at + 2], ARGV[at + 3]
  local generation, member, most = ARGV[at + 4], ARGV[at + 5], ARGV[at + 6]
  local hash = redis.call('HMGET', key, 'number', 'pending', 'ask', 'hold', 'dead', 'deadGeneration', 'gone', 'owner',
    'finished')
  local number, pending, hold = (tonumber(hash[1]) or 0) + 1, tonumber(hash[2]) or 0, hash[4] or ''
  if most ~= '' and pending == 0 and hold == '' and (hash[8] or '') == '' and (tonumber(hash[9]) or 0) >= number - 1 then
    before = before or redis.call('ZCARD', KEYS[5]) + redis.call('ZCARD', KEYS[6]) - added
    if before + added >= tonumber(most) then return { 0, before + added } end
  end

  local ask, waiting = nil, 0
  if pending > 0 then
    ask = readAsk(hash[3])
    waiting = ask.class
  else
    ask = { class = class, since = nowText, news = '0', floor = '-', count = 0, triggers = '' }
  end
  if class < ask.class then ask.class = class end
  if news == '1' then ask.news = '1' end
  if string.find(version, '^[1-9]%d*$') then
    local floor = ask.floor
    if floor == '-' or #version > #floor or (#version == #floor and version > floor) then ask.floor = version end
  end
  if ask.count >= cap then
    local cut = string.find(ask.triggers, '\n', 1, true)
    ask.triggers, ask.count = cut and string.sub(ask.triggers, cut + 1) or '', ask.count - 1
  end
  ask.triggers = ask.count > 0 and (ask.triggers .. '\n' .. trigger) or trigger
  ask.count = ask.count + 1

  local state = flowOf(ask.class, member)
  -- A better class that joins brings its own place, unless the place that the key has is better still.
  if waiting == 0 or (class < waiting and tagOf(state) < ask.tag) then ask.tag = nextTag(state) end

  local isGone, numberText, waits = hash[7] == '1', string.format('%d', number), string.format('%d', pending + 1)
  if generation == '' then
    redis.call('HSET', key, 'number', numberText, 'pending', waits, 'ask', writeAsk(ask))
  else
    redis.call('HSET', key, 'number', numberText, 'pending', waits, 'ask', writeAsk(ask), 'generation', generation)
  end
  if hash[5] == '1' and (class == 1 or (generation ~= '' and generation ~= hash[6])) then
    redis.call('HSET', key, 'dead', '', 'failures', '0', 'conflicts', '0')
    redis.call('ZREM', KEYS[4], member)
  end
  if isGone then
    redis.call('HSET', key, 'gone', '')
    redis.call('PERSIST', key)
  end
  if number == 1 or isGone then note(indexed, '0', member) end
  -- Where nothing waits, nothing has to age.
  if pending == 0 and (ask.class > 2 or ask.tag - state.v > AGEING_BACKLOG) then
    note(waitsSince, nowText, member)
  end

  local wake = news == '1' and wakes(key, hold, class, now)
  local raised = class < waiting or (hold ~= '' and class < 3)
  addJob(bull, member, priorityOf(ask.tag, state.base, ask.class), wake, raised, nowText, left)
  return { number, pending > 0 and 1 or 0 }
end

local answers, count = {}, #KEYS - 6
for i = 1, count do
  local ok, answer = pcall(request, KEYS[i + 6], 3 + (i - 1) * WIDTH, count - i + 1)
  answers[i] = (ok or type(answer) == 'table') and answer or redis.error_reply(answer)
end
for _, state in pairs(flows) do
  if state.moved then redis.call('HSET', fair, state.flow, state.last) end
end
if #indexed > 0 then redis.call('ZADD', KEYS[3], unpack(indexed)) end
if #waitsSince > 0 then redis.call('ZADD', ageing, unpack(waitsSince)) end
announceJobs(bull)
return answers
`,
);
