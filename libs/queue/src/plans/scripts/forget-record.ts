import { readLua, type LuaPart } from "@konverge/redis";

/** `forget(id)`: deletes the record of a plan, its age and its size. Uses `records`, `ages` and `sizes` of the signature. */
export const forgetRecordPart: LuaPart = {
  lua: readLua(new URL("forget-record.lua", import.meta.url)),
};
