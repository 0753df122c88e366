import { readLua, type LuaPart } from "@konverge/redis";
import { labelsPart } from "./labels.ts";

/**
 * `forget(ended, index, statuses, beforeMs, most)` removes runs that ended before that time from the index; their own keys
 * have expired by then.
 */
export const forgetPart: LuaPart = {
  lua: readLua(new URL("forget-runs.lua", import.meta.url)),
  include: [labelsPart],
};
