import { defineScript, readLua, replyList, type Script } from "@konverge/redis";
import { anyPausePart } from "./any-pause.ts";
import { decodeBegun, type Begun } from "./begun.ts";
import { beginAttemptPart } from "./begin-attempt.ts";

const signature = {
  name: "begin",
  keys: ["fair", "aging", "pauses", "parked", "aborts", "dead", "progress"],
  args: {
    leaseMs: "number",
    worker: "text",
    /** Attempts kept per key. */
    kept: "number",
    retentionMs: "text",
    /** Consecutive attempts that never ended, from which a key is dead-lettered. */
    maxLost: "number",
    /** The kind of queue. */
    work: "text",
    /** The progress below which Redis was restored, in epoch ms; 0 if unknown. */
    oldestMs: "number",
  },
  /** `key`: its hash; its list of attempts is named after that. `owner`: a text that no other attempt has. */
  each: { keys: ["key"], args: { owner: "text" } },
} as const;

/** Takes the key lease for attempts that are about to start. Combines several, because each call has a fixed cost. */
export const beginScript: Script<typeof signature, Begun[]> = defineScript(signature, {
  lua: readLua(new URL("begin.lua", import.meta.url)),
  include: [anyPausePart, beginAttemptPart],
  answer: (reply) => replyList(reply).map(decodeBegun),
});
