import { readLua, type LuaPart } from "@konverge/redis";

/**
 * `wakes` decides whether a new event may start a key before its backoff is over. A bucket per key (5, then one every 10 s)
 * bounds how often: otherwise frequent changes near a failing key would defeat its backoff. Other events stay pending and
 * are covered when the backoff ends. `woken` marks that a token was taken for this wait.
 */
export const newsPart: LuaPart = { lua: readLua(new URL("news.lua", import.meta.url)) };
