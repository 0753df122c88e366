import { defineScript, type Script } from "@konverge/redis";

/**
 * Drops the oldest attempts of a key. Only reads and pops, which a Redis that is full allows.
 *
 * KEYS: 1 attempt list, newest first. ARGV: 1 time (ms) up to which an attempt that ended is dropped.
 */
export const dropAttemptsScript: Script = defineScript(
  "drop-attempts",
  String.raw`
while true do
  local oldest = redis.call('LINDEX', KEYS[1], -1)
  if not oldest or (tonumber(string.match(oldest, '^%d+')) or 0) > tonumber(ARGV[1]) then return 1 end
  redis.call('RPOP', KEYS[1])
end
`,
);
