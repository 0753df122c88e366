import { readLua, type LuaPart } from "@konverge/redis";

/** `now`: the time of the server in ms since 1970, and `nowText`, because Redis converts numbers slowly. */
export const nowPart: LuaPart = { lua: readLua(new URL("now.lua", import.meta.url)) };
