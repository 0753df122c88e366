import { readLua, type LuaPart } from "@konverge/redis";

/**
 * The index of runs by label is a sorted set of ids for each name and value, by creation. A hash has the labels of each run,
 * because the run itself has expired when it leaves the index. Their names begin with `statuses`, as the index by status.
 *
 * `relabel(statuses, id, labels, createdAt)` replaces the labels (JSON) of a run, `unlabel(statuses, id)` removes them.
 */
export const labelsPart: LuaPart = { lua: readLua(new URL("labels.lua", import.meta.url)) };
