import { readLua, type LuaPart } from "@konverge/redis";
import { askPart } from "./ask.ts";
import { revisionPart } from "./revision.ts";

/**
 * `deadLetter` ends the retries of a key. `death` is the time and the first line of its attempt's entry; `versions` are those of
 * the object that the attempt read or wrote.
 */
export const deadLetterPart: LuaPart = {
  lua: readLua(new URL("dead-letter.lua", import.meta.url)),
  include: [askPart, revisionPart],
};
