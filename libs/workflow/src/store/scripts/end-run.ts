import { clockPart, readLua, type LuaPart } from "@konverge/redis";
import { forgetPart } from "./forget-runs.ts";
import { lastRunPart } from "./last-run.ts";
import { movePart } from "./move-run.ts";
import { runSizesPart } from "./run-sizes.ts";
import { runSlotsPart } from "./run-slots.ts";

/**
 * `endRun(at, run, id, status, field, text, retentionMs)` ends a run: its status, its result or error, and the expiry of its
 * data. Returns the runs that get its slot. `at` has the other names by key, and in `data` the names that expire, the run and its steps first. Two expired runs are removed from the index, so that the index never grows faster
 * than it shrinks.
 */
export const endRunPart: LuaPart = {
  lua: readLua(new URL("end-run.lua", import.meta.url)),
  include: [clockPart, movePart, forgetPart, lastRunPart, runSizesPart, runSlotsPart],
};

/** Keys of a script that ends a run; their names are those of `endingKeys`. */
export const ENDING_KEYS = [
  "run",
  "steps",
  "signals",
  "signalNames",
  "seen",
  "refusals",
  "wakes",
  "endedRuns",
  "cancelling",
  "holder",
  "index",
  "waitKinds",
  "rechecks",
  "last",
  "lastChecks",
] as const;

export type EndingKey = (typeof ENDING_KEYS)[number];
