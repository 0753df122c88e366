import { readLua, type LuaPart } from "@konverge/redis";

/**
 * `logAction` keeps an operator action; `noteAt` puts the time of Redis into a note (JSON object), since the clocks of users'
 * machines differ.
 */
export const actionLogPart: LuaPart = { lua: readLua(new URL("action-log.lua", import.meta.url)) };
