import { defineScript, type Script } from "@konverge/redis";
import { askLua } from "./ask.ts";
import { fairTagLua } from "./fair-tag.ts";
import { newsLua } from "./news.ts";

/**
 * Merges a request into the hash of its key. Runs before the job is added, so that a job which starts in between covers
 * the request already.
 *
 * KEYS: 1 key hash, 2 fair (hash), 3 ageing, 4 index, 5 dead (sorted sets); where the queue is bounded also 6 parked, 7
 * BullMQ's waiting jobs (sorted sets).
 * ARGV: 1 class (1 interactive .. 4 resync), 2 news (1 or 0), 3 trigger (JSON without line breaks), 4 resourceVersion or
 * "", 5 generation or "", 6 most triggers to keep, 7 key, 8 most waiting keys or "" for no bound.
 * Answer: number, joined (1 when another request was waiting), priority (for BullMQ; the best of what waits), wake, raised
 * (the priority of the job that waits already must change), now in ms; or 0, waiting keys: refused, nothing was changed. Refused is only
 * what would add a job: a key that runs, waits, or backs off has one.
 *
 * Wakes a key from its backoff only for news, and as often as its bucket allows (news.ts); a person always does.
 * A resourceVersion counts as floor only where versions compare (digits; longer is newer, KEP-5504).
 */
export const requestScript: Script = defineScript(
  "request",
  askLua +
    fairTagLua +
    newsLua +
    String.raw`
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local key, fair, ageing = KEYS[1], KEYS[2], KEYS[3]
local class, news = tonumber(ARGV[1]), ARGV[2]
local trigger, version, generation, cap, member = ARGV[3], ARGV[4], ARGV[5], tonumber(ARGV[6]), ARGV[7]
local hash = redis.call('HMGET', key, 'number', 'pending', 'ask', 'hold', 'dead', 'deadGeneration', 'gone')
local number, pending, hold = (tonumber(hash[1]) or 0) + 1, tonumber(hash[2]) or 0, hash[4] or ''
if ARGV[8] ~= '' and pending == 0 and hold == '' then
  local run = redis.call('HMGET', key, 'owner', 'finished')
  if (run[1] or '') == '' and (tonumber(run[2]) or 0) >= number - 1 then
    local depth = redis.call('ZCARD', KEYS[6]) + redis.call('ZCARD', KEYS[7])
    if depth >= tonumber(ARGV[8]) then return { 0, depth } end
  end
end

local ask, waiting = nil, 0
if pending > 0 then
  ask = readAsk(hash[3])
  waiting = ask.class
else
  ask = { class = class, since = now, news = '0', floor = '-', count = 0, triggers = '' }
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

local state = readFair(fair, ask.class, member)
-- A better class that joins brings its own place, unless the place that the key has is better still.
if waiting == 0 or (class < waiting and tagOf(state) < ask.tag) then ask.tag = takeTag(fair, state) end

local set = { 'number', number, 'pending', pending + 1, 'ask', writeAsk(ask) }
local function put(field, value)
  set[#set + 1] = field
  set[#set + 1] = value
end
if generation ~= '' then put('generation', generation) end
if hash[5] == '1' and (class == 1 or (generation ~= '' and generation ~= hash[6])) then
  put('dead', '')
  put('failures', 0)
  put('conflicts', 0)
  redis.call('ZREM', KEYS[5], member)
end
if hash[7] == '1' then
  put('gone', '')
  redis.call('PERSIST', key)
end
if number == 1 or hash[7] == '1' then redis.call('ZADD', KEYS[4], 0, member) end
redis.call('HSET', key, unpack(set))
-- Where nothing waits, nothing has to age.
if pending == 0 and (ask.class > 2 or ask.tag - state.v > AGEING_BACKLOG) then
  redis.call('ZADD', ageing, now, member)
end

local wake = (news == '1' and wakes(key, hold, class, now)) and 1 or 0
local raised = (class < waiting or (hold ~= '' and class < 3)) and 1 or 0
return { number, pending > 0 and 1 or 0, priorityOf(ask.tag, state.base, ask.class), wake, raised, now }
`,
);
