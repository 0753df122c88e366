import { defineScript, readLua, replyTexts, type Script } from "@konverge/redis";
import { clockPart, GRACE_MS } from "./clock.ts";
import { forgetPart } from "./forget-runs.ts";
import { RECHECK_GAP_MS, RECHECK_MS } from "./waits.ts";

const signature = {
  name: "workflow-sweep",
  keys: ["wakes", "endedRuns", "index", "rechecks", "recheckGap"],
  args: {
    /** Most runs to return, and to remove from the index. */
    most: "number",
    retentionMs: "number",
    /** Prefix of the index by status. */
    statuses: "text",
  },
} as const;

/**
 * Returns the ids of runs that should have continued, and removes those from the index that are kept no longer. Each id is
 * returned again after the grace, until the run is claimed.
 *
 * Runs that wait for objects are returned beside them, by their own time and with their own limit, so that many of them do
 * not delay the others; and by one sweep of the fleet at a time, since each of them is a call of an API server.
 */
export const sweepScript: Script<typeof signature, string[]> = defineScript(signature, {
  lua: readLua(new URL("sweep.lua", import.meta.url)),
  include: [clockPart, forgetPart],
  constants: { GRACE_MS, RECHECK_MS, RECHECK_GAP_MS },
  answer: replyTexts,
});
