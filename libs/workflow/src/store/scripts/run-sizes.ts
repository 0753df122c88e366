import { clockPart, readLua, type LuaPart } from "@konverge/redis";

/** Memory of an ended run with small values, in bytes, without its steps. */
const RUN_BYTES = 3_600;
/** Memory of a step beyond its name and record. */
const STEP_BYTES = 32;
/** Steps that are measured; the size of further ones is their average. */
const MOST_MEASURED = 1_000;

/**
 * The estimated sizes of ended runs. A sorted set has members `<bytes>/<id>` by the time of the end, and the hash `kept` their
 * sum. Both are changed together, so that the sum stays correct. Workers of earlier versions store no sizes: an entry that
 * such a worker does not remove expires after the retention.
 *
 * `addSize(statuses, run, steps, id)` adds a run that has just ended. `dropSize(statuses, member)` removes an entry.
 */
export const runSizesPart: LuaPart = {
  lua: readLua(new URL("run-sizes.lua", import.meta.url)),
  include: [clockPart],
  constants: { RUN_BYTES, STEP_BYTES, MOST_MEASURED },
};
