import { defineScript, readLua, replyFlag, type Script } from "@konverge/redis";

const signature = {
  name: "abandon",
  keys: ["key"],
  args: {
    /** Of the attempt. */
    epoch: "text",
    member: "text",
    /** Prefix of BullMQ's names, with its colon. */
    bull: "text",
  },
} as const;

/**
 * Ends the lease of an attempt whose worker counts as lost, and returns its job to the queue. Returns false if the attempt has
 * ended, or another one has begun. Relies on BullMQ's layout; a contract test compares it with BullMQ's own return of a job.
 */
export const abandonScript: Script<typeof signature, boolean> = defineScript(signature, {
  lua: readLua(new URL("abandon.lua", import.meta.url)),
  answer: replyFlag,
});
