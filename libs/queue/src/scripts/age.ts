import { askLua } from "./ask.ts";
import { fairTagLua } from "./fair-tag.ts";
import { defineScript, type Script } from "@konverge/redis";
import { waitingJobLua } from "./waiting-job.ts";

/**
 * Brings keys forward that have waited for their ageing bound: each gets a place in its tenant's flow of the aged, which
 * yields to nobody, and counts as an event from then on. One whose backoff is over by Redis's clock starts, whatever the clock of the
 * worker said that put it off.
 *
 * KEYS: 1 fair (hash), 2 ageing (sorted set, score = since when a key waits, in ms). ARGV: 1 root of the key hashes, 2 root of BullMQ's
 * keys, 3 most keys at once, 4 age in ms from which a key comes first, 5 weights as one text, then tenants and their weights in turn.
 * Answer: how many were looked at.
 *
 * Names of key hashes and jobs are built here; they share the hash tag of KEYS.
 */
export const ageScript: Script = defineScript(
  "age",
  askLua +
    fairTagLua +
    waitingJobLua +
    String.raw`
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local fair, ageing, hashes, bull = KEYS[1], KEYS[2], ARGV[1], ARGV[2]
-- Producers read the weights that workers are configured to; a Redis that lost them is told again.
if redis.call('HGET', fair, 'weights') ~= ARGV[5] then
  for _, field in ipairs(redis.call('HKEYS', fair)) do
    if string.sub(field, 1, 2) == 'w:' then redis.call('HDEL', fair, field) end
  end
  for i = 6, #ARGV, 2 do redis.call('HSET', fair, 'w:' .. ARGV[i], ARGV[i + 1]) end
  redis.call('HSET', fair, 'weights', ARGV[5])
end

local due = redis.call('ZRANGEBYSCORE', ageing, '-inf', now - tonumber(ARGV[4]), 'LIMIT', 0, tonumber(ARGV[3]))
for _, member in ipairs(due) do
  local key = hashes .. member
  local h = redis.call('HMGET', key, 'owner', 'pending', 'hold', 'nextAt', 'dead', 'woken', 'ask')
  local pending, nextAt = tonumber(h[2]) or 0, tonumber(h[4]) or 0
  local runs = h[1] and h[1] ~= ''
  local backsOff = h[3] and h[3] ~= '' and h[6] ~= '1' and nextAt > now
  local waits = h[5] ~= '1' and (pending > 0 or (not runs and h[3] and h[3] ~= ''))
  local state = readFair(fair, 0, member)
  -- What backs off, and what is parked behind a running attempt, begins to wait when that is over.
  if waits and (runs or backsOff) then
    redis.call('ZADD', ageing, runs and now or nextAt, member)
  else
    redis.call('ZREM', ageing, member)
  end
  if waits and not runs and not backsOff then
    local jobId = redis.call('GET', bull .. 'de:' .. member)
    -- Where the queue is now, and there before what came later.
    local tag = takeTag(fair, state) - state.cost - CLASS_DISTANCE[2]
    if pending > 0 then
      local ask = readAsk(h[7])
      ask.tag, ask.class = tag, math.min(ask.class, 2)
      redis.call('HSET', key, 'ask', writeAsk(ask))
    end
    if jobId then
      local priority = priorityOf(tag, state.base, 2)
      setPriority(bull, jobId, priority)
      -- Its delay is over by our clock; by that of the worker which delayed it, it may last for hours.
      hasten(bull, jobId, priority)
    end
  end
end
return #due
`,
);
