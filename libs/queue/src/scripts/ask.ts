import { readLua, type LuaPart } from "@konverge/redis";

/**
 * `readAsk` and `writeAsk`: what is requested of a key and not yet covered by an attempt, in one field of its hash. One text
 * instead of seven fields, since every reconcile writes and reads all of it. Its first line is
 * `class since tag news floor count` (floor `-` when there is none, count of triggers), the others are triggers as JSON.
 * It is valid while `pending` is above 0.
 */
export const askPart: LuaPart = { lua: readLua(new URL("ask.lua", import.meta.url)) };
