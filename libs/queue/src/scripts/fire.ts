import { defineScript, type Script } from "@konverge/redis";

/**
 * Claims due timers. A claim that nobody acknowledges (ZREM from `firing`) is due again, so a pump that dies loses none;
 * a timer armed meanwhile lives in the other set and is not touched by the acknowledgement.
 *
 * KEYS: 1 timers, 2 firing (sorted sets, score = due time in ms), 3 resuming (text), 4 aborts (hash). ARGV: 1 most to claim, 2
 * claim in ms.
 * Answer: ms until the next one is due or -1, whether people have given orders that workers must carry out (3 or 4 exists),
 * then the claimed members.
 */
export const fireScript: Script = defineScript(
  "fire",
  String.raw`
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local timers, firing, limit, claimMs = KEYS[1], KEYS[2], tonumber(ARGV[1]), tonumber(ARGV[2])
local answer = { -1, redis.call('EXISTS', KEYS[3], KEYS[4]) }
for _, member in ipairs(redis.call('ZRANGEBYSCORE', firing, '-inf', now, 'LIMIT', 0, limit)) do
  redis.call('ZADD', firing, now + claimMs, member)
  answer[#answer + 1] = member
end
if #answer - 2 < limit then
  for _, member in ipairs(redis.call('ZRANGEBYSCORE', timers, '-inf', now, 'LIMIT', 0, limit - #answer + 2)) do
    redis.call('ZREM', timers, member)
    redis.call('ZADD', firing, now + claimMs, member)
    answer[#answer + 1] = member
  end
end
for _, set in ipairs({ timers, firing }) do
  local head = redis.call('ZRANGE', set, 0, 0, 'WITHSCORES')
  if head[2] then
    local waitMs = math.max(0, tonumber(head[2]) - now)
    if answer[1] == -1 or waitMs < answer[1] then answer[1] = waitMs end
  end
end
return answer
`,
);
