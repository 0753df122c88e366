import { readLua, type LuaPart } from "@konverge/redis";

/** `now` is the time of Redis in ms, so that no process's clock decides. `int` formats a number as digits. */
export const sourceClockPart: LuaPart = {
  lua: readLua(new URL("source-clock.lua", import.meta.url)),
};
