import { clockPart, defineScript, readLua, replyWord, type Script } from "@konverge/redis";
import { actionLogPart } from "./action-log.ts";

/**
 * `unknown`: no such request. `alreadyFinished`, also if it was cancelled before: nothing was changed. `cancelled`: no other request
 * waits. `detached`: the key continues for others. `aborting`: its attempt is being aborted.
 */
export type CancelAnswer = "unknown" | "alreadyFinished" | "cancelled" | "detached" | "aborting";

/** Cancellations kept per key. Unfinished requests are kept beyond that. */
const KEPT = 200;

const signature = {
  name: "cancel",
  /** `cancelled` is sorted by number; a member is the number, a space and the note. */
  keys: ["key", "cancelled", "aborts", "parked", "aging", "actions"],
  args: {
    member: "text",
    /** Number of the request. */
    asked: "number",
    /** JSON objects. */
    note: "text",
    action: "text",
    retentionMs: "text",
  },
} as const;

/**
 * Cancels one request. Other requests of the key remain: the key is released, or its attempt aborted, only after every
 * request that it waits or runs for was cancelled. Of the finished ones, the newest cancellations are kept.
 */
export const cancelScript: Script<typeof signature, CancelAnswer> = defineScript(signature, {
  lua: readLua(new URL("cancel.lua", import.meta.url)),
  include: [clockPart, actionLogPart],
  constants: { KEPT },
  answer: (reply) =>
    replyWord(reply, ["unknown", "alreadyFinished", "cancelled", "detached", "aborting"]),
});
