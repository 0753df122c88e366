import { clockPart, readLua, type LuaPart } from "@konverge/redis";

/** Delay before a waiting run rechecks its objects without an event, in ms. */
export const RECHECK_MS = 30_000;

/** Between two sweeps of the fleet that return such runs, in ms; a little less than the time between two of one worker. */
export const RECHECK_GAP_MS = 4_500;

/**
 * The index of runs that wait for objects: per kind a sorted set of `<namespace>/<name>/<workflow>/<id>`, all of one score, so
 * that the runs of an object are a range by name; and the set of the kinds. A run's own list is its field `watched`.
 *
 * `enterWait(root, kinds, object, member)` and `leaveWait(...)` add and remove the wait of a run for an object.
 * `leaveWaits(root, kinds, rechecks, run, id, watched, objects, member)` removes its waits except those for `objects`.
 */
export const waitsPart: LuaPart = {
  lua: readLua(new URL("waits.lua", import.meta.url)),
  include: [clockPart],
  constants: { RECHECK_MS },
};
