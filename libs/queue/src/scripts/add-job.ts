import { addPrioritizedJob } from "bullmq/dist/esm/scripts/addPrioritizedJob-9.js";
import { waitingJobLua } from "./waiting-job.ts";

/** Name of the custom backoff: the delay is drawn from the key's counters, not from BullMQ's. */
export const BACKOFF_TYPE = "konverge";

const JOB_NAME = "reconcile";

/**
 * `attempts` is the largest integer that BullMQ stores without harm; giving up is decided by the key's counters. A failed
 * job's text says little on purpose: what happened is in the attempt's record. What is the same for all jobs is said by the
 * worker, since every job carries its options through Redis and back.
 */
const JOB_OPTIONS = {
  attempts: Number.MAX_SAFE_INTEGER,
  backoff: { type: BACKOFF_TYPE },
  stackTraceLimit: 1,
};

/**
 * Gives a key its job, as Lua that other scripts include: what BullMQ's `add` with `deduplication { id: key,
 * keepLastIfActive, reschedule: wake }` does, without its events. `bull` is the root of the queue's keys, with its colon; a
 * key is percent-encoded, so that it can stand in JSON as it is.
 *
 * Most keys have no job, or one that waits already, and need a fifth of BullMQ's script, which is written here and relies on
 * its layout; the contract tests compare both. For all other cases BullMQ's own text is called, out of its package.
 */
export const addJobLua: string =
  waitingJobLua +
  `
local function bullAdd(KEYS, ARGV, cmsgpack)
${addPrioritizedJob.content}
end
` +
  String.raw`
local JOB_OPTIONS = '${JSON.stringify(JOB_OPTIONS)}'
-- BullMQ's script unpacks its arguments; here they come as they are.
local AS_IS = { unpack = function(value) return value end }

-- Of all jobs of one call: the next id, the next place among those of one priority, and how many were added.
local nextId, nextPlace
local added = 0

local function newJob(bull, member, data, priority, now, left)
  if not nextId then
    nextId = redis.call('INCRBY', bull .. 'id', left) - left
    nextPlace = redis.call('INCRBY', bull .. 'pc', left) - left
  end
  nextId, nextPlace, added = nextId + 1, nextPlace + 1, added + 1
  local jobId = string.format('%d', nextId)
  redis.call('HSET', bull .. jobId, 'name', '${JOB_NAME}', 'data', data, 'opts', JOB_OPTIONS, 'timestamp', now, 'delay', '0',
    'priority', string.format('%d', priority), 'deid', member)
  redis.call('SET', bull .. 'de:' .. member, jobId)
  redis.call('ZADD', bull .. 'prioritized', string.format('%.0f', priority * PRIORITY_UNIT + nextPlace % PRIORITY_UNIT), jobId)
end

-- "raised" when a job that is there already must change its place; "left" is how many jobs the call may still add, with this.
local function addJob(bull, member, priority, wake, raised, now, left)
  local data, owner = '{"key":"' .. member .. '"}', redis.call('GET', bull .. 'de:' .. member)
  if not owner then return newJob(bull, member, data, priority, now, left) end
  if redis.call('ZSCORE', bull .. 'prioritized', owner) then
    if raised then setPriority(bull, owner, priority) end
    return
  end
  -- It runs, backs off, or is not there any more.
  local options = cjson.decode(JOB_OPTIONS)
  options.priority, options.timestamp = priority, now
  options.de = { id = member, keepLastIfActive = true, reschedule = wake }
  local keys = {}
  for i, name in ipairs({ 'marker', 'meta', 'id', 'prioritized', 'delayed', 'completed', 'active', 'events', 'pc' }) do
    keys[i] = bull .. name
  end
  local job = bullAdd(keys, { { bull, '', '${JOB_NAME}', now, [9] = bull .. 'de:' .. member }, data, options }, AS_IS)
  -- A parked follow-up has the priority already; a job that backs off leaves with it.
  if raised and job == owner then redis.call('HSET', bull .. owner, 'priority', priority) end
end

-- Lets workers know, as BullMQ does, once for all jobs of the call.
local function announceJobs(bull)
  if added == 0 then return end
  local h = redis.call('HMGET', bull .. 'meta', 'paused', 'concurrency')
  if h[1] or (h[2] and redis.call('LLEN', bull .. 'active') >= tonumber(h[2])) then return end
  redis.call('ZADD', bull .. 'marker', '0', '0')
end
`;
