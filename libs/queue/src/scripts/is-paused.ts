import { readLua, type LuaPart } from "@konverge/redis";

/**
 * `isPaused(pauses, member)`. The hash `pauses` has a field per scope (pause-scope.ts): `*` for all keys, `n/<namespace>` and
 * `k/<key>`.
 */
export const isPausedPart: LuaPart = { lua: readLua(new URL("is-paused.lua", import.meta.url)) };
