import { readLua, type LuaPart } from "@konverge/redis";
import { askPart } from "./ask.ts";
import { deadLetterPart } from "./dead-letter.ts";
import { fairTagPart } from "./fair-tag.ts";
import { nowPart } from "./now.ts";

/**
 * `endAttempt(attempt)` stores how an attempt ended and releases its lease. Needs the keys `timers`, `fair`, `aging`, `index`,
 * `dead` and `aborts`, the arguments `kept` (attempts per key) and `retentionMs`, and the local `anyAbort`. `attempt` has the fields of `each` in `end`, and
 * `key` and `list`. Returns "stored" or "fenced", the
 * priority of the job that waits from now on or 0, and whether the same end was already stored.
 *
 * Fenced: when another epoch has taken over, nothing is changed. The attempt passes its counters and the number it covers,
 * since its lease prevented changes. The same end twice is stored once. An attempt that a user cancelled is the last of its
 * requests, however it ended.
 */
export const endAttemptPart: LuaPart = {
  lua: readLua(new URL("end-attempt.lua", import.meta.url)),
  include: [nowPart, askPart, fairTagPart, deadLetterPart],
};
