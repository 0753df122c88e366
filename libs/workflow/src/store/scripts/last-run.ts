import { clockPart, readLua, type LuaPart } from "@konverge/redis";
import { MAX_KEPT_TEXT } from "../run-actions.ts";

/** Interval between two checks whether the object of a last run still exists, in ms. */
export const LAST_CHECK_MS = 86_400_000;

/**
 * The end of the last run of a key that is for an object, in a hash without expiry. The run therefore does not start again
 * after its retention. A sorted set has the keys by the time of the next check for their objects. If an object is missing,
 * its hash gets an expiry, which a start for the object removes.
 *
 * `keepLast(last, lastChecks, key, record)` stores an end. `findLast(last, lastChecks, key, id, uid, generation)` returns the
 * response to a start if the run, a retry of it, or a run for a newer generation of the object has ended.
 * `isNewer(one, other)` compares generations.
 */
export const lastRunPart: LuaPart = {
  lua: readLua(new URL("last-run.lua", import.meta.url)),
  include: [clockPart],
  constants: { LAST_CHECK_MS, MAX_KEPT_TEXT },
};
