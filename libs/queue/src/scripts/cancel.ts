import { defineScript, readLua, replyWord, type Script } from "@konverge/redis";
import { actionLogPart } from "./action-log.ts";

/**
 * `unknown`: no such request. `alreadyFinished`, also if it was withdrawn before: nothing was changed. `cancelled`: no other request
 * waits. `detached`: the key continues for others. `aborting`: the attempt that runs for it is being ended.
 */
export type CancelAnswer = "unknown" | "alreadyFinished" | "cancelled" | "detached" | "aborting";

const signature = {
  name: "cancel",
  /** `cancelled` is a hash by number. */
  keys: ["key", "cancelled", "aborts", "parked", "ageing", "actions"],
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
 * Withdraws one request. What others requested of the same key stays: the key is released, or its attempt aborted, only when
 * every request that it waits or runs for has been withdrawn.
 */
export const cancelScript: Script<typeof signature, CancelAnswer> = defineScript(signature, {
  lua: readLua(new URL("cancel.lua", import.meta.url)),
  include: [actionLogPart],
  answer: (reply) =>
    replyWord(reply, ["unknown", "alreadyFinished", "cancelled", "detached", "aborting"]),
});
