/**
 * Changes the priority of a job that waits, as Lua that other scripts include: what BullMQ's changePriority does, for many
 * jobs in one script. It relies on BullMQ's layout (score = priority * 2^32 + counter; hash field `priority`); the
 * contract tests hold it. `bull` is the root of the queue's keys, with its colon.
 */
export const waitingJobLua: string = String.raw`
local PRIORITY_UNIT = 4294967296

local function setPriority(bull, jobId, priority)
  local score = tonumber(redis.call('ZSCORE', bull .. 'prioritized', jobId))
  if not score then return end
  redis.call('ZADD', bull .. 'prioritized', string.format('%.0f', priority * PRIORITY_UNIT + score % PRIORITY_UNIT), jobId)
  redis.call('HSET', bull .. jobId, 'priority', priority)
end
`;
