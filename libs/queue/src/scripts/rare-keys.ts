import { readLua, type LuaPart } from "@konverge/redis";
import { fullPart } from "./full.ts";

/**
 * States that are rare, read with one command if there are none: `anyRare`, `anyAbort` (a user cancelled running attempts),
 * `anyPause` (keys or namespaces are paused), `hasWaitList` (BullMQ has jobs without priority), `anyStalled` (BullMQ looks for
 * lost workers), and `exists(key)`. Lets the script write to a full Redis. Needs the keys `timers`, `aborts` and `pauses`, the
 * argument `bull`, and items with a `member`. No later part may change these keys before they are used.
 */
export const rareKeysPart: LuaPart = {
  lua: readLua(new URL("rare-keys.lua", import.meta.url)),
  include: [fullPart],
};
