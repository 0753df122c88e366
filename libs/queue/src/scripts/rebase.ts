import { clockPart, defineScript, readLua, replyFlag, type Script } from "@konverge/redis";
import { askPart } from "./ask.ts";
import { fairTagPart } from "./fair-tag.ts";
import { waitingJobPart } from "./waiting-job.ts";

/** Flows from which those of past namespaces are removed, and how many are examined per call. */
export const FLOWS_KEPT = 200;

const signature = {
  name: "rebase",
  keys: ["fair"],
  args: {
    /** Prefix of the key hashes. */
    hashes: "text",
    /** Prefix of BullMQ's keys. */
    bull: "text",
    /** Most jobs at once. */
    limit: "number",
    /** Tags from the base after which a new one is due. */
    after: "number",
  },
} as const;

/**
 * Keeps BullMQ's priorities below their limit of 2,097,151: far from the base, tags count from a later base, and the
 * priorities of waiting jobs are recomputed in parts, most urgent first, so that the order holds. Jobs that arrive with a
 * priority of the old base (an earlier parked follow-up, a retry) are searched at the end for an hour.
 *
 * Also removes the flows of past namespaces and classes, a part of them per call.
 * Returns true while there is more to do at once.
 */
export const rebaseScript: Script<typeof signature, boolean> = defineScript(signature, {
  lua: readLua(new URL("rebase.lua", import.meta.url)),
  constants: { FLOWS_KEPT },
  include: [clockPart, askPart, fairTagPart, waitingJobPart],
  answer: replyFlag,
});
