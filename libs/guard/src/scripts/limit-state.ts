import { LIMIT } from "@konverge/core";
import { readLua, type LuaPart } from "@konverge/redis";

/** Reads one key of a limit and defines its changes. Needs the keys of `LimitNames` and the argument `key`; returns `unset` without rules. */
export const limitStatePart: LuaPart = {
  lua: readLua(new URL("limit-state.lua", import.meta.url)),
  constants: { LIMIT },
};
