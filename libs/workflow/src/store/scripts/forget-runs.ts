import { readLua, type LuaPart } from "@konverge/redis";
import { labelsPart } from "./labels.ts";
import { runSizesPart } from "./run-sizes.ts";

/**
 * `forget(ended, index, statuses, beforeMs, most)` removes runs that ended before that time from the index, with their
 * sizes; their own keys have expired by then. `dropRun(ended, index, statuses, id)` removes one run from the index.
 */
export const forgetPart: LuaPart = {
  lua: readLua(new URL("forget-runs.lua", import.meta.url)),
  include: [labelsPart, runSizesPart],
};
