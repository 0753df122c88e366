import { readLua, type LuaPart } from "@konverge/redis";

/**
 * `isOtherRevision` compares revisions of an object (keys/revision.ts). A kind without generation has a new resourceVersion
 * after each write, so the versions that the attempt itself read or wrote do not count as others.
 */
export const revisionPart: LuaPart = { lua: readLua(new URL("revision.lua", import.meta.url)) };
