import { defineScript, readLua, replyNumber, type Script } from "@konverge/redis";

const signature = {
  name: "advance-progress",
  /** Hash of the progress by kind of queue, beside the queues. */
  keys: ["progress"],
  args: {
    at: "text",
    /** The progress below which the data was restored, in epoch ms. */
    oldest: "number",
  },
  each: { args: { kind: "text" } },
} as const;

/** Advances the progress of the queues with this root. Returns false, and changes nothing, if it is too old. */
export const advanceProgressScript: Script<typeof signature, boolean> = defineScript(signature, {
  lua: readLua(new URL("advance-progress.lua", import.meta.url)),
  answer: (reply) => replyNumber(reply) === 1,
});
