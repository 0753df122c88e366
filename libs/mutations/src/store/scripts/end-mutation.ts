import { clockPart, readLua, type LuaPart } from "@konverge/redis";

/** Ends mutations, and publishes their ids for callers that wait. */
export const endMutationPart: LuaPart = {
  lua: readLua(new URL("end-mutation.lua", import.meta.url)),
  include: [clockPart],
};
