import { readLua, type LuaPart } from "@konverge/redis";
import { endedPart } from "./ended.ts";

/**
 * The runs that wait for each other, because they have the same key. `lineFrom(last, runRoot, most)` returns the ids of a run
 * and of those before it that have not ended, at most so many; the active one is at the end. A run that ended before its turn still names the one
 * before it.
 */
export const linePart: LuaPart = {
  lua: readLua(new URL("line.lua", import.meta.url)),
  include: [endedPart],
};
