import type { LuaPart } from "./compose-lua.ts";
import { readLua } from "./script.ts";

/** `now` is the time of Redis in ms since 1970, so that no process's clock decides. `int` formats a number as digits. */
export const clockPart: LuaPart = { lua: readLua(new URL("clock.lua", import.meta.url)) };
