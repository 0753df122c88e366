import { readLua, type LuaPart } from "@konverge/redis";
import { askPart } from "./ask.ts";
import { deadLetterPart } from "./dead-letter.ts";
import { isPausedPart } from "./is-paused.ts";
import { nowPart } from "./now.ts";

/** Attempts lost in a row from which the key is a suspect: it runs alone in its process. */
export const SUSPECT_FROM = 2;

/**
 * `begin(key, owner)` takes the lease of one attempt and `settle()` ends the call. Needs the keys `fair`, `aging`, `pauses`,
 * `parked`, `aborts`, `dead` and `progress`, and the arguments `leaseMs`, `worker`, `kept` (attempts per key), `retentionMs`,
 * `maxLost`, `work` (the kind of queue) and `oldestMs`, and the local `anyPause`.
 *
 * `begin` returns:
 * - { "run", "epoch attempt failures conflicts covered", run, the trace context of a request if any, "quiet parks" unless it is
 *   "0 " }; quiet is 1 if resyncs alone have requested the key since its last success, and parks are the times in which it was
 *   parked; behind covered, if the
 *   last epochs never ended: how many in a row if the last was found now, else 0, and how many in a row. Failures of another object or generation are not
 *   counted; conflicts are, since the writer of the generations may be the competing writer
 * - { "busy", ms left of another epoch's lease }
 * - { "backoff", failures, now in ms, epochs in a row that never ended }: not for the first time in a row
 * - { "dead", epochs in a row that never ended }: rejected until a user asks or the revision changes; requests stay pending.
 *   0 unless the key has just been dead-lettered, because `maxLost` epochs in a row never ended
 * - { "held" }: the progress of this kind of work is below `oldestMs`, because Redis was restored. Nothing changes. Costs one HGET
 *   per call
 * - { "covered" }: nothing was requested since the last finished attempt began, or a user has cancelled it
 * - { "paused" }: requests stay pending, and the key is parked until the pause ends. Without pauses this costs one EXISTS per
 *   call
 *
 * `run` is a field of the key hash as well: startedAt, worker, class, since (when the oldest request that it covers was
 * made), floor or "-", revision, a line each; then the triggers. Numbers are kept as texts where they are only passed
 * on: Redis takes longer to write a number of Lua's than to do anything else here.
 *
 * The attempt of a suspect counts as lost only if its epoch is in the field `turn`: it did not wait for its turn when its
 * worker died.
 *
 * The same owner twice gets the same answer, since a lost connection repeats the call.
 */
export const beginAttemptPart: LuaPart = {
  lua: readLua(new URL("begin-attempt.lua", import.meta.url)),
  include: [nowPart, askPart, isPausedPart, deadLetterPart],
  constants: {
    SUSPECT_FROM,
    MOST_PARK_CHARS: 200,
    LOST_CODE: "lost",
    LOST_MESSAGE: "%d attempts in a row never ended: their workers crashed or stopped responding",
  },
};
