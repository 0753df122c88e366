import { clockPart, readLua, type LuaPart } from "@konverge/redis";

/**
 * `electedFor(text)`, for the arguments `owner` and `electMs`. The hash of elected pumps has a field per queue,
 * `<owner> <until, in ms>`, with `/idle` after the owner if the queue had no active jobs at its last round.
 */
export const electedForPart: LuaPart = {
  lua: readLua(new URL("elected-for.lua", import.meta.url)),
  include: [clockPart],
  constants: { IDLE: "/idle" },
};
