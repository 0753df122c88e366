import { readLua, type LuaPart } from "@konverge/redis";
import { clockPart, GRACE_MS } from "./clock.ts";

/** `noteCancel(run, wakes, cancelling, id, request)` stores a cancellation; the first one counts. */
export const noteCancelPart: LuaPart = {
  lua: readLua(new URL("note-cancel.lua", import.meta.url)),
  include: [clockPart],
  constants: { GRACE_MS },
};
