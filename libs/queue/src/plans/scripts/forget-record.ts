import { readLua, type LuaPart } from "@konverge/redis";

/** `forget(id)`: deletes the record of a plan, its age and its size. Uses `root`, `ages` and `sizes` of the signature. */
export const forgetPlanPart: LuaPart = {
  lua: readLua(new URL("forget-plan.lua", import.meta.url)),
};
