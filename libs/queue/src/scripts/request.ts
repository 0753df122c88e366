import { defineScript, type Script } from "@konverge/redis";
import { fairTagLua } from "./fair-tag.ts";
import { newsLua } from "./news.ts";

/**
 * Merges a request into the hash of its key. Runs before the job is added, so that a job which starts in between covers
 * the request already.
 *
 * KEYS: 1 key hash, 2 fair (hash), 3 ageing (sorted set).
 * ARGV: 1 class (1 interactive .. 4 resync), 2 news (1 or 0), 3 trigger (JSON without line breaks), 4 resourceVersion or
 * "", 5 generation or "", 6 most triggers to keep, 7 key.
 * Answer: number, joined (1 when another request was waiting), priority (for BullMQ; the best of what waits), wake, raised
 * (the priority of the job that waits already must change).
 *
 * Wakes a key from its backoff only for news, and as often as its bucket allows (news.ts); a person always does.
 * A resourceVersion counts as floor only where versions compare (digits; longer is newer, KEP-5504).
 */
export const requestScript: Script = defineScript(
  "request",
  fairTagLua +
    newsLua +
    String.raw`
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local key, fair, ageing = KEYS[1], KEYS[2], KEYS[3]
local class, news = tonumber(ARGV[1]), ARGV[2]
local trigger, version, generation, cap, member = ARGV[3], ARGV[4], ARGV[5], tonumber(ARGV[6]), ARGV[7]
local hash = redis.call('HMGET', key, 'number', 'pending', 'class', 'floor', 'triggers', 'triggerCount', 'hold', 'dead',
  'deadGeneration', 'gone', 'tag')
local number, pending = (tonumber(hash[1]) or 0) + 1, tonumber(hash[2]) or 0
local waiting, hold = tonumber(hash[3]) or 0, hash[7] or ''
local merged = (pending > 0 and waiting > 0 and waiting < class) and waiting or class

local list, count = hash[5] or '', tonumber(hash[6]) or 0
if count >= cap then
  local cut = string.find(list, '\n', 1, true)
  list, count = cut and string.sub(list, cut + 1) or '', count - 1
end
list = count > 0 and (list .. '\n' .. trigger) or trigger

local set = { 'number', number, 'pending', pending + 1, 'class', merged, 'triggers', list, 'triggerCount', count + 1 }
local function put(field, value)
  set[#set + 1] = field
  set[#set + 1] = value
end
if pending == 0 then put('since', now) end
if news == '1' then put('news', '1') end
if string.find(version, '^[1-9]%d*$') then
  local floor = hash[4] or ''
  if #version > #floor or (#version == #floor and version > floor) then put('floor', version) end
end
if generation ~= '' then put('generation', generation) end
if hash[8] == '1' and (class == 1 or (generation ~= '' and generation ~= hash[9])) then
  put('dead', '')
  put('failures', 0)
  put('conflicts', 0)
end
if hash[10] == '1' then
  put('gone', '')
  redis.call('PERSIST', key)
end

local state = readFair(fair, merged, member)
local tag = pending > 0 and tonumber(hash[11]) or nil
-- A better class that joins brings its own place, unless the place that the key has is better still.
if not tag or (merged < waiting and tagOf(state) < tag) then
  tag = takeTag(fair, state)
  put('tag', tag)
end
redis.call('HSET', key, unpack(set))
-- Where nothing waits, nothing has to age.
if pending == 0 and (merged > 2 or tag - state.v > AGEING_BACKLOG) then
  redis.call('ZADD', ageing, now, member)
end

local wake = (news == '1' and wakes(key, hold, class, now)) and 1 or 0
local raised = ((pending > 0 and class < waiting) or (hold ~= '' and class < 3)) and 1 or 0
return { number, pending > 0 and 1 or 0, priorityOf(tag, state.base, merged), wake, raised }
`,
);
