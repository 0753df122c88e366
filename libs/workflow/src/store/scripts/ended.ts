import { readLua, type LuaPart } from "@konverge/redis";

/** `ended(status)`: whether a run with this status never runs again. */
export const endedPart: LuaPart = { lua: readLua(new URL("ended.lua", import.meta.url)) };
