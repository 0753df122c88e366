import { defineScript, type Script } from "@konverge/redis";

/**
 * Reads the marker by which a loss of data is noticed; writes it where it is missing.
 *
 * KEYS: 1 marker. ARGV: 1 a text that nobody else has. Answer: { marker, INFO server }.
 */
export const incarnationScript: Script = defineScript(
  "incarnation",
  String.raw`
local marker = redis.call('GET', KEYS[1])
if not marker then
  marker = ARGV[1]
  redis.call('SET', KEYS[1], marker)
end
return { marker, redis.call('INFO', 'server') }
`,
);
