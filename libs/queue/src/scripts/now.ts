import { clockPart, readLua, type LuaPart } from "@konverge/redis";

/** `nowText`: `now` of the clock as digits, because Redis converts numbers slowly. */
export const nowPart: LuaPart = {
  lua: readLua(new URL("now.lua", import.meta.url)),
  include: [clockPart],
};
