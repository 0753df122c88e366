import {
  clockPart,
  defineScript,
  readLua,
  replyList,
  replyNumber,
  replyTexts,
  type Reply,
  type Script,
} from "@konverge/redis";
import { endedPart } from "./ended.ts";
import { GRACE_MS } from "./clock.ts";
import { forgetPart } from "./forget-runs.ts";
import { LAST_CHECK_MS } from "./last-run.ts";
import { runSlotsPart } from "./run-slots.ts";
import { shrinkPart } from "./shrink-runs.ts";
import { RECHECK_GAP_MS, RECHECK_MS } from "./waits.ts";

/** Most objects to check per sweep. */
const MOST_CHECKED = 20;
/** Most groups of runs per sweep that get free slots. */
const MOST_GROUPS = 10;
/** Holders of slots per sweep that are checked, of one group with waiting runs. */
const MOST_HOLDERS = 10;

export interface SweepAnswer {
  readonly runs: readonly string[];
  /** Keys with their objects, in turn. */
  readonly checks: readonly string[];
  /** True if further groups have free slots to give. */
  readonly hasRests: boolean;
  /** Ended runs that were deleted before the end of their retention. */
  readonly dropped: number;
}

const signature = {
  name: "workflow-sweep",
  keys: ["wakes", "endedRuns", "index", "rechecks", "recheckGap", "lastChecks"],
  args: {
    /** Most runs to return, and to remove from the index. */
    most: "number",
    retentionMs: "number",
    /** Limit of the sizes of ended runs; empty for none. */
    limitBytes: "text",
    /** Prefix of the index by status. */
    statuses: "text",
    /** Prefix of the names of the ends of last runs. */
    lastRoot: "text",
    /** Prefix of the names of runs. */
    runRoot: "text",
  },
} as const;

/**
 * Returns the ids of runs that should have continued, and removes those from the index that are kept no longer. Deletes the oldest ended runs beyond the limit of their sizes. Each id is
 * returned again after the grace, until the run is claimed.
 *
 * Runs that wait for objects are returned beside them, by their own time and with their own limit, so that many of them do
 * not delay the others; and by one sweep of the fleet at a time, since each of them is a call of an API server.
 *
 * Also returns the runs that get a slot now because their number has changed or a holder is missing, and kept ends of runs whose
 * object is to be checked.
 */
export const sweepScript: Script<typeof signature, SweepAnswer> = defineScript(signature, {
  lua: readLua(new URL("sweep.lua", import.meta.url)),
  include: [endedPart, clockPart, forgetPart, runSlotsPart, shrinkPart],
  constants: {
    GRACE_MS,
    RECHECK_MS,
    RECHECK_GAP_MS,
    LAST_CHECK_MS,
    MOST_CHECKED,
    MOST_GROUPS,
    MOST_HOLDERS,
  },
  answer: decode,
});

function decode(reply: Reply): SweepAnswer {
  const [runs, checks, rests, dropped] = replyList(reply);
  const hasRests = replyNumber(rests) === 1;
  return {
    runs: replyTexts(runs),
    checks: replyTexts(checks),
    hasRests,
    dropped: replyNumber(dropped),
  };
}
