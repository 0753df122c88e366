import { defineScript, type Script } from "@konverge/redis";

/**
 * Prolongs key leases, together with BullMQ's locks.
 *
 * KEYS: per attempt, key hash. ARGV: 1 lease in ms; then per attempt its epoch.
 * Answer, per attempt: 1 renewed, 0 when the epoch has ended or another has taken over.
 */
export const renewScript: Script = defineScript(
  "renew",
  String.raw`
local time = redis.call('TIME')
local untilMs = time[1] * 1000 + math.floor(time[2] / 1000) + tonumber(ARGV[1])
local answers = {}
for i, key in ipairs(KEYS) do
  local h = redis.call('HMGET', key, 'epoch', 'owner')
  local ours = h[1] == ARGV[i + 1] and h[2] ~= '' and h[2] ~= false
  if ours then redis.call('HSET', key, 'leaseUntil', untilMs) end
  answers[i] = ours and 1 or 0
end
return answers
`,
);
