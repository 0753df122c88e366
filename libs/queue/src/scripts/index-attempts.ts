import { defineScript, type Script } from "@konverge/redis";

/**
 * Adds rows to the search index, and names the oldest ones that are over the budget. Each entry holds the bytes of all rows
 * and records up to and with itself, so that what is kept is a difference of two and needs no counter of its own.
 *
 * KEYS: 1 index (stream). ARGV: 1 budget in bytes, 2 most rows to name, 3 bytes to free beyond the budget; then per row its
 * text and the bytes of it and its record.
 * Answer: bytes kept, then the rows to drop, oldest first, each as id and text.
 */
export const indexAttemptsScript: Script = defineScript(
  "index-attempts",
  String.raw`
local index, budget, most, beyond = KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local last = redis.call('XREVRANGE', index, '+', '-', 'COUNT', 1)[1]
local sum = last and tonumber(last[2][4]) or 0
for i = 4, #ARGV, 2 do
  sum = sum + tonumber(ARGV[i + 1])
  redis.call('XADD', index, '*', 'r', ARGV[i], 's', string.format('%.0f', sum))
end
local first = redis.call('XRANGE', index, '-', '+', 'COUNT', 1)[1]
if not first then return { 0 } end
-- The first row's own bytes are left out: what lies before it is gone.
local kept = sum - tonumber(first[2][4])
local answer = { kept }
local free = math.max(kept - budget, 0) + beyond
if free == 0 then return answer end
local from = tonumber(first[2][4])
for _, row in ipairs(redis.call('XRANGE', index, '-', '+', 'COUNT', most)) do
  if tonumber(row[2][4]) - from > free then break end
  answer[#answer + 1] = row[1]
  answer[#answer + 1] = row[2][2]
end
return answer
`,
);
