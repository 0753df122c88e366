import { defineScript, type Script } from "@konverge/redis";
import { clockLua } from "./clock.ts";

/**
 * Records a step, once. The first record of a step stays whoever comes later, so that all executions see one value.
 *
 * KEYS: 1 run, 2 steps (hashes), 3 signals (list), 4 cancelling (set).
 * ARGV: 1 epoch, 2 step, 3 record (a JSON object that is not empty), 4 sleep in ms or "", 5 the signal that it takes, as it is
 * in the list, or "", 6 id when the cancellation is thrown with this record, else "", 7 all warnings of the run (JSON) or "" to
 * leave them.
 * Answer: { 'committed' | 'exists', record }; { 'fenced' }: another epoch holds the run; { 'taken' }: the signal is not
 * there. Of the last two nothing was changed.
 */
export const commitScript: Script = defineScript(
  "workflow-commit",
  clockLua +
    String.raw`
if redis.call('HGET', KEYS[1], 'epoch') ~= ARGV[1] then return { 'fenced' } end
local known = redis.call('HGET', KEYS[2], ARGV[2])
if known then return { 'exists', known } end
if ARGV[5] ~= '' and redis.call('LREM', KEYS[3], 1, ARGV[5]) == 0 then return { 'taken' } end
local seq = redis.call('HINCRBY', KEYS[1], 'seq', 1)
local record = string.sub(ARGV[3], 1, -2) .. ',"seq":' .. int(seq) .. ',"atMs":' .. int(now)
if ARGV[4] ~= '' then record = record .. ',"untilMs":' .. int(now + tonumber(ARGV[4])) end
record = record .. '}'
redis.call('HSET', KEYS[2], ARGV[2], record)
redis.call('HDEL', KEYS[2], ARGV[2] .. '~')
if ARGV[6] ~= '' then
  redis.call('HSET', KEYS[1], 'cancelledAt', ARGV[2])
  redis.call('SREM', KEYS[4], ARGV[6])
end
if ARGV[7] ~= '' then redis.call('HSET', KEYS[1], 'warnings', ARGV[7]) end
return { 'committed', record }
`,
);
