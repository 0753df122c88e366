import { clockPart, readLua, type LuaPart } from "@konverge/redis";
import { GRACE_MS } from "./clock.ts";

/**
 * `noteCancel(run, wakes, cancelling, id, request, again)` stores a cancellation. A later one counts only if it may be given
 * `again` and the one before was thrown. Returns `requested`, or why nothing was changed: `pending` or `compensating`.
 */
export const noteCancelPart: LuaPart = {
  lua: readLua(new URL("note-cancel.lua", import.meta.url)),
  include: [clockPart],
  constants: { GRACE_MS },
};
