import { defineScript, readLua, replyNumber, type Script } from "@konverge/redis";
import { askPart } from "./ask.ts";

const signature = {
  name: "headAge",
  /** BullMQ's waiting jobs. */
  keys: ["waiting"],
  args: {
    /** Prefix of the key hashes. */
    hashes: "text",
    /** Prefix of BullMQ's keys. */
    bull: "text",
  },
} as const;

/**
 * How long the key that starts next has been waiting, in ms: for its oldest request, but not while it backed off; 0 when none
 * waits. Keys that reach the aging time start first, so no key waits much longer than this.
 *
 * Names of key hashes and jobs are built here; they share the hash tag of the key.
 */
export const headAgeScript: Script<typeof signature, number> = defineScript(signature, {
  lua: readLua(new URL("head-age.lua", import.meta.url)),
  include: [askPart],
  answer: replyNumber,
});
