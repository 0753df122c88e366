import { readLua, type LuaPart } from "@konverge/redis";

/** `anyAbort`: whether a user cancelled running attempts. Lets the script write to a full Redis. Needs the keys `timers` and `aborts`. */
export const anyAbortPart: LuaPart = { lua: readLua(new URL("any-abort.lua", import.meta.url)) };
