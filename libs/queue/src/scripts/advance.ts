import {
  defineScript,
  readLua,
  replyList,
  replyNumber,
  replyText,
  replyTexts,
  replyWord,
  type Reply,
  type Script,
} from "@konverge/redis";
import { JOB_CONSTANTS } from "./add-job.ts";
import { beginAttemptPart } from "./begin-attempt.ts";
import { decodeBegun, type Begun } from "./begun.ts";
import { endAttemptPart } from "./end-attempt.ts";
import { decodeEnded, type Ended } from "./end.ts";
import { rareKeysPart } from "./rare-keys.ts";
import { waitingJobPart } from "./waiting-job.ts";

/** A job that was fetched for a slot. */
export interface NextJob {
  readonly jobId: string;
  /**
   * The fields of the job's hash and their values, alternately. For a request that starts for the first time, only those that
   * differ.
   */
  readonly stored:
    | readonly string[]
    | { readonly id: string; readonly priority: number; readonly timestamp: number };
  /** Undefined for a job that BullMQ is to fail or repeat. */
  readonly begun: Begun | undefined;
}

export interface Advanced {
  readonly ended: Ended;
  /** False if BullMQ's own script has to finish the job and fetch the next. */
  readonly isFinished: boolean;
  readonly next: NextJob | undefined;
  /** When the next delayed job is due, in ms since 1970; 0 if unknown. */
  readonly delayedUntilMs: number;
}

const signature = {
  name: "advance",
  keys: ["timers", "fair", "aging", "index", "dead", "aborts", "pauses", "parked", "progress"],
  args: {
    /** Attempts kept per key. */
    kept: "number",
    retentionMs: "number",
    leaseMs: "number",
    worker: "text",
    /** Consecutive attempts that never ended, from which a key is dead-lettered. */
    maxLost: "number",
    /** The kind of queue. */
    work: "text",
    /** The progress below which Redis was restored, in epoch ms; 0 if unknown. */
    oldestMs: "number",
    /** Prefixes of BullMQ's keys, of the key hashes, and of the lists of attempts. */
    bull: "text",
    hashes: "text",
    lists: "text",
    /** The worker's, in ms since 1970. */
    clock: "text",
  },
  /** Slots of a worker. The attempt that ends has the fields of `end`. */
  each: {
    args: {
      jobId: "text",
      /** The slot's lock of its jobs. */
      token: "text",
      /** The key. */
      member: "text",
      epoch: "text",
      owner: "text",
      outcome: "text",
      covered: "text",
      entry: "text",
      rest: "text",
      /** Owner of the next attempt, or empty to fetch no job. */
      nextOwner: "text",
    },
  },
} as const;

/**
 * Ends attempts, finishes their jobs, fetches the next jobs and begins their attempts, for all slots of a worker that end
 * together. Does the same as `end`, BullMQ's `moveToFinished` with a fetch, and `begin`, except for BullMQ's events and
 * unnecessary markers.
 *
 * Only the common case is written here and relies on BullMQ's layout: the contract tests compare both. In all other cases only
 * the end is stored, and BullMQ's script from its package does the rest: fenced and retried attempts, jobs whose
 * follow-up is parked, lost locks, and paused or limited queues.
 *
 * A lost connection repeats the call. The slot then gets the job that was fetched the first time.
 *
 * Names of key hashes and jobs are built here; they share the hash tag of the keys.
 */
export const advanceScript: Script<typeof signature, Advanced[]> = defineScript(signature, {
  lua: readLua(new URL("advance.lua", import.meta.url)),
  include: [rareKeysPart, endAttemptPart, beginAttemptPart, waitingJobPart],
  // Lua cannot unpack more.
  constants: { MOST_ACTIVE: 5_000, JOB_OPTIONS: JOB_CONSTANTS.JOB_OPTIONS },
  answer: (reply) => replyList(reply).map(decode),
});

function decode(reply: Reply): Advanced {
  const [state, priority, how, next, fields, begun] = replyList(reply);
  const ended = decodeEnded([state ?? null, priority ?? null]);
  const isFinished = replyWord(how, ["finished", "open"]) === "finished";
  if (fields === undefined) {
    const delayedUntilMs = next === undefined ? 0 : replyNumber(next);
    return { ended, isFinished, next: undefined, delayedUntilMs };
  }
  const job = {
    jobId: replyText(next),
    stored: decodeStored(fields),
    begun: begun === undefined ? undefined : decodeBegun(begun),
  };
  return { ended, isFinished, next: job, delayedUntilMs: 0 };
}

function decodeStored(reply: Reply): NextJob["stored"] {
  const texts = replyTexts(reply);
  const [id, priority, timestamp] = texts;
  // A list of fields and values has an even length.
  if (texts.length !== 3) return texts;
  return { id: replyText(id), priority: replyNumber(priority), timestamp: replyNumber(timestamp) };
}
