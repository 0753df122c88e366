import { defineScript, type Script } from "@konverge/redis";
import { clockLua } from "./clock.ts";

/**
 * Notes how far an unfinished step has come: attempts that failed, and until when it waits. Kept beside the records, under
 * the step's name and a tilde, which no name holds.
 *
 * KEYS: 1 run, 2 steps (hashes).
 * ARGV: 1 epoch, 2 step, 3 attempts, 4 delay in ms from now, 5 "1" to keep what is noted, 6 what else is
 * noted (a JSON object), or "".
 * Answer: { 'noted', progress (JSON) }, or { 'fenced' }: nothing was changed.
 */
export const noteScript: Script = defineScript(
  "workflow-note",
  clockLua +
    String.raw`
if redis.call('HGET', KEYS[1], 'epoch') ~= ARGV[1] then return { 'fenced' } end
local field = ARGV[2] .. '~'
local progress = '{"attempts":' .. ARGV[3] .. ',"untilMs":' .. int(now + tonumber(ARGV[4]))
progress = progress .. (ARGV[6] == '' and '}' or ',' .. string.sub(ARGV[6], 2))
if ARGV[5] == '1' then
  redis.call('HSETNX', KEYS[2], field, progress)
  return { 'noted', redis.call('HGET', KEYS[2], field) }
end
redis.call('HSET', KEYS[2], field, progress)
return { 'noted', progress }
`,
);
