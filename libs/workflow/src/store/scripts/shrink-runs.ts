import { clockPart, readLua, type LuaPart } from "@konverge/redis";
import { endedPart } from "./ended.ts";
import { forgetPart } from "./forget-runs.ts";
import { runSizesPart } from "./run-sizes.ts";

/** A run is kept for this time after its end, even beyond the limit, so that a repeated start finds it. */
export const LEAST_KEPT_MS = 3_600_000;

/**
 * `shrink(ended, index, statuses, runRoot, limit, most)` deletes the oldest ended runs of a workflow while their sizes exceed
 * the limit, and returns their number. It examines at most `most` runs. The kept end of an object's last run stays.
 */
export const shrinkPart: LuaPart = {
  lua: readLua(new URL("shrink-runs.lua", import.meta.url)),
  include: [endedPart, clockPart, forgetPart, runSizesPart],
  constants: { LEAST_KEPT_MS },
};
