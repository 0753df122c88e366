import { clockPart, readLua, type LuaPart } from "@konverge/redis";
import { GRACE_MS } from "./clock.ts";
import { movePart } from "./move-run.ts";

/**
 * A run is `pausing` while an execution may still have a body at work, then `paused`. Its field `pausedFrom` has the status
 * that it gets back.
 *
 * `isPaused(status)` returns true for both. `acknowledgePause(run, id, statuses, createdAt)` ends `pausing`.
 * `endPause(run, id, statuses, wakes)` ends the pause.
 */
export const pausesPart: LuaPart = {
  lua: readLua(new URL("pauses.lua", import.meta.url)),
  include: [clockPart, movePart],
  constants: { GRACE_MS },
};
