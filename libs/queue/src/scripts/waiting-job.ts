import { readLua, type LuaPart } from "@konverge/redis";

/**
 * `setPriority` and `hasten` change the priority of a waiting job and end its delay, like BullMQ's changePriority, for many
 * jobs in one script. They rely on BullMQ's layout (score = priority * 2^32 + counter; hash field `priority`; delayed
 * jobs by the time when they are due); the contract tests compare it. `bull` is the prefix of the queue's keys, with its colon.
 */
export const waitingJobPart: LuaPart = {
  lua: readLua(new URL("waiting-job.lua", import.meta.url)),
};
