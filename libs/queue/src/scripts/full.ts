import { readLua, type LuaPart } from "@konverge/redis";

/**
 * `isFull`: whether Redis has reached `maxmemory` (redis.io, "Eval scripts with memory limits"). Needs the argument `bull`, and comes
 * before parts that write.
 */
export const fullPart: LuaPart = { lua: readLua(new URL("full.lua", import.meta.url)) };
