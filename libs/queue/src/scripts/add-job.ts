import { readLua, type LuaPart } from "@konverge/redis";
import type { JobsOptions } from "bullmq";
import { addPrioritizedJob } from "bullmq/dist/esm/scripts/addPrioritizedJob-9.js";
import { waitingJobPart } from "./waiting-job.ts";

/** Name of the custom backoff: the delay is drawn from the key's counters, not from BullMQ's. */
export const BACKOFF_TYPE = "konverge";

/** Name of the jobs of all requests. */
export const JOB_NAME = "reconcile";

/**
 * Returns the options of the jobs of all requests. `attempts` is the largest integer that BullMQ stores safely; the key's
 * counters limit the attempts. A failed job's text is short on purpose: the attempt's record has the details. Options that are
 * the same for all jobs are set on the worker, since every job carries its options through Redis and back.
 */
export function jobOptions(): JobsOptions {
  return {
    attempts: Number.MAX_SAFE_INTEGER,
    backoff: { type: BACKOFF_TYPE },
    stackTraceLimit: 1,
  };
}

/** For scripts: the name and the stored options of the jobs. */
export const JOB_CONSTANTS: Readonly<Record<"JOB_NAME" | "JOB_OPTIONS", string>> = {
  JOB_NAME,
  JOB_OPTIONS: JSON.stringify(jobOptions()),
};

const bullAddPart: LuaPart = {
  lua: `local function bullAdd(KEYS, ARGV, cmsgpack)\n${addPrioritizedJob.content}\nend`,
};

/**
 * `addJob` gives a key its job: what BullMQ's `add` with `deduplication { id: key, keepLastIfActive, reschedule: wake }` does,
 * without its events. `bull` is the prefix of the queue's keys, with its colon; a key is percent-encoded, so that it can stand
 * in JSON as it is.
 *
 * Most keys have no job or a waiting one, and need a fifth of BullMQ's script. That part is written here and relies on
 * BullMQ's layout; the contract tests compare both. All other cases call BullMQ's own script from its package.
 */
export const addJobPart: LuaPart = {
  lua: readLua(new URL("add-job.lua", import.meta.url)),
  include: [waitingJobPart, bullAddPart],
  constants: JOB_CONSTANTS,
};
