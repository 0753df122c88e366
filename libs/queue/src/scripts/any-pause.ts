import { readLua, type LuaPart } from "@konverge/redis";

/** `anyPause`: whether keys or namespaces are paused. Needs the key `pauses`. */
export const anyPausePart: LuaPart = { lua: readLua(new URL("any-pause.lua", import.meta.url)) };
