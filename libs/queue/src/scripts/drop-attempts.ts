import { defineScript, type Script } from "@konverge/redis";

/**
 * Drops the oldest attempts of keys. Only reads and pops, which a Redis that is full allows.
 *
 * KEYS: attempt lists, newest first. ARGV: per list, the time (ms) up to which an attempt that ended is dropped.
 */
export const dropAttemptsScript: Script = defineScript(
  "drop-attempts",
  String.raw`
for i, list in ipairs(KEYS) do
  local untilMs = tonumber(ARGV[i])
  while true do
    local oldest = redis.call('LINDEX', list, -1)
    if not oldest or (tonumber(string.match(oldest, '^%d+')) or 0) > untilMs then break end
    redis.call('RPOP', list)
  end
end
return 1
`,
);
