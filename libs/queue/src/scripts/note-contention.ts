import { defineScript, type Script } from "@konverge/redis";

/**
 * Counts who won against us on an object, and from whom we took fields. A pair is one manager and one field.
 *
 * KEYS: 1 fights of the object (hash, one field per pair), 2 hot objects of the hour, 3 flips of the hour (sorted sets).
 * ARGV: 1 object, 2 longest time between two of one episode in ms, 3 retention in ms, 4 most pairs kept, 5 most members of the
 * sorted sets, 6 lost races; then per pair four: "conflict" or "takeover", manager, field, count.
 * Answer, per pair: its count in this episode.
 *
 * A pair's value is "count episode firstMs lastMs": of all time, and since it began after a pause.
 */
export const noteContentionScript: Script = defineScript(
  "note-contention",
  String.raw`
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local object, pauseMs, retentionMs, most, members = ARGV[1], tonumber(ARGV[2]), ARGV[3], tonumber(ARGV[4]),
  tonumber(ARGV[5])
local contention, hot, flips = KEYS[1], KEYS[2], KEYS[3]

local function dropOldest()
  local all, oldest, oldestRequestAgeMs = redis.call('HGETALL', contention), nil, nil
  for i = 1, #all, 2 do
    local lastMs = tonumber(string.match(all[i + 1], '(%d+)$'))
    if not oldestRequestAgeMs or lastMs < oldestRequestAgeMs then oldest, oldestRequestAgeMs = all[i], lastMs end
  end
  if oldest then redis.call('HDEL', contention, oldest) end
end
local function rank(set, by, member)
  redis.call('ZINCRBY', set, by, member)
  redis.call('ZREMRANGEBYRANK', set, 0, -members - 1)
  redis.call('PEXPIRE', set, retentionMs)
end

local answer, lost = {}, tonumber(ARGV[6])
for i = 7, #ARGV, 4 do
  local kind, manager, path, by = ARGV[i], ARGV[i + 1], ARGV[i + 2], tonumber(ARGV[i + 3])
  local pair = kind .. '\n' .. manager .. '\n' .. path
  local count, episode, firstMs = 0, 0, now
  local known = redis.call('HGET', contention, pair)
  if known then
    local a, b, c, d = string.match(known, '^(%d+) (%d+) (%d+) (%d+)$')
    count = tonumber(a)
    if now - tonumber(d) <= pauseMs then episode, firstMs = tonumber(b), tonumber(c) end
  elseif redis.call('HLEN', contention) >= most then
    dropOldest()
  end
  redis.call('HSET', contention, pair, (count + by) .. ' ' .. (episode + by) .. ' ' .. firstMs .. ' ' .. now)
  if kind == 'takeover' and episode + by >= 2 then rank(flips, by, object .. '\n' .. manager .. '\n' .. path) end
  answer[#answer + 1] = episode + by
end
redis.call('PEXPIRE', contention, retentionMs)
if lost > 0 then rank(hot, lost, object) end
return answer
`,
);
