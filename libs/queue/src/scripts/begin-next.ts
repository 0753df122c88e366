import {
  defineScript,
  readLua,
  replyList,
  replyText,
  type Reply,
  type Script,
} from "@konverge/redis";
import { decodeBegun, type Begun } from "./begun.ts";
import { beginAttemptPart } from "./begin-attempt.ts";

export interface BegunJob {
  readonly jobId: string;
  /** Of the key. */
  readonly id: string;
  readonly begun: Begun;
}

const signature = {
  name: "begin-next",
  /** `active`: BullMQ's list, newest first. */
  keys: ["fair", "aging", "pauses", "parked", "aborts", "dead", "progress", "active"],
  args: {
    leaseMs: "number",
    worker: "text",
    /** Attempts kept per key. */
    kept: "number",
    retentionMs: "text",
    /** Consecutive attempts that never ended, from which a key is dead-lettered. */
    maxLost: "number",
    /** The kind of queue. */
    work: "text",
    /** The progress below which Redis was restored, in epoch ms; 0 if unknown. */
    oldestMs: "number",
    /** Prefix of BullMQ's keys. */
    bull: "text",
    /** Prefix of the key hashes. */
    hashes: "text",
    /** The last index of the active list to examine. */
    most: "number",
  },
  /** Slots: `token` is the lock of the job, `finishing` the job that is being finished. */
  each: { args: { owner: "text", token: "text", finishing: "text" } },
} as const;

/**
 * Begins the jobs that BullMQ has just returned to slots of this worker, found by their locks. Sent after BullMQ's finishes
 * of the previous jobs, so that a reconcile takes one round trip instead of two. Undefined for a slot without a job, or
 * whose job is no longer near the head.
 *
 * Names of key hashes and jobs are built here; they share the hash tag of the keys.
 */
export const beginNextScript: Script<typeof signature, (BegunJob | undefined)[]> = defineScript(
  signature,
  {
    lua: readLua(new URL("begin-next.lua", import.meta.url)),
    include: [beginAttemptPart],
    answer: (reply) => replyList(reply).map(decode),
  },
);

function decode(reply: Reply): BegunJob | undefined {
  const [jobId, id, ...answer] = replyList(reply);
  if (jobId === undefined) return undefined;
  return { jobId: replyText(jobId), id: replyText(id), begun: decodeBegun(answer) };
}
