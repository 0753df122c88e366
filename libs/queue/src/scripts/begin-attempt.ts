import { readLua, type LuaPart } from "@konverge/redis";
import { askPart } from "./ask.ts";
import { isPausedPart } from "./is-paused.ts";

/**
 * `begin(key, owner)` takes the lease of one attempt and `settle()` ends the call. Needs the keys `fair`, `ageing`, `pauses`,
 * `parked` and `aborts`, and the arguments `leaseMs`, `worker`, `kept` (attempts per key) and `retentionMs`.
 *
 * `begin` returns:
 * - { "run", "epoch attempt failures conflicts covered", run, the trace context of a request if any }; behind covered, where an
 *   epoch has just been found that never ended, how many of them there were in a row. Failures of another object or generation are not
 *   counted; conflicts are, since the writer of the generations may be the competing writer
 * - { "busy", ms left of another epoch's lease }
 * - { "backoff", failures, now in ms, epochs in a row that never ended }: not for the first time in a row
 * - { "dead" }: rejected until a user asks or the revision changes; requests stay pending
 * - { "covered" }: nothing was requested since the last finished attempt began, or a user has cancelled it
 * - { "paused" }: requests stay pending, and the key is parked until the pause ends. Without pauses this costs one EXISTS per
 *   call
 *
 * `run` is a field of the key hash as well: startedAt, worker, class, since (when the oldest request that it covers was
 * made), floor or "-", revision, a line each; then the triggers. Numbers are kept as texts where they are only passed
 * on: Redis takes longer to write a number of Lua's than to do anything else here.
 *
 * The same owner twice gets the same answer, since a lost connection repeats the call.
 */
export const beginAttemptPart: LuaPart = {
  lua: readLua(new URL("begin-attempt.lua", import.meta.url)),
  include: [askPart, isPausedPart],
};
