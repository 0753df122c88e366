import { BREAKER } from "@konverge/core";
import { readLua, type LuaPart } from "@konverge/redis";

/** Reads the state of a guard and defines `setLimits`. Needs the key `state`. */
export const setLimitsPart: LuaPart = {
  lua: readLua(new URL("set-limits.lua", import.meta.url)),
  constants: { BREAKER },
};
