import { clockPart, defineScript, readLua, replyNumber, type Script } from "@konverge/redis";
import { askPart } from "./ask.ts";
import { fairTagPart } from "./fair-tag.ts";
import { waitingJobPart } from "./waiting-job.ts";

const signature = {
  name: "age",
  /** `aging` has the keys by start of their wait, in ms. */
  keys: ["fair", "aging"],
  args: {
    /** Prefix of the key hashes. */
    hashes: "text",
    /** Prefix of BullMQ's keys. */
    bull: "text",
    /** Most keys per call. */
    limit: "number",
    /** Age from which a key starts first. */
    ageMs: "number",
    /** All weights as one text, to compare. */
    weights: "text",
  },
  each: { args: { name: "text", weight: "text" } },
} as const;

/**
 * Brings keys forward that have waited for their aging bound: each gets a place in its tenant's flow of the aged, which
 * yields to nothing, and counts as an event from then on. One whose backoff is over by Redis's clock starts, whatever the
 * clock of the worker that deferred it. Returns how many keys were examined. Also restores a lost marker of BullMQ.
 *
 * Names of key hashes and jobs are built here; they share the hash tag of the keys.
 */
export const ageScript: Script<typeof signature, number> = defineScript(signature, {
  lua: readLua(new URL("age.lua", import.meta.url)),
  include: [clockPart, askPart, fairTagPart, waitingJobPart],
  answer: replyNumber,
});
