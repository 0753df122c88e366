import { readLua, type LuaPart } from "@konverge/redis";

/**
 * `move(statuses, id, from, to, createdAt)` changes the set that a run is in: two commands of O(log n). The index of runs by
 * status is a sorted set of ids for each, by creation; `statuses` is the prefix of their names.
 */
export const movePart: LuaPart = { lua: readLua(new URL("move-run.lua", import.meta.url)) };
