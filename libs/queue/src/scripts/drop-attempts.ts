import { defineScript, readLua, replyNumber, type Script } from "@konverge/redis";

const signature = {
  name: "drop-attempts",
  /** A list, newest first. */
  keys: ["attempts"],
  args: {
    /** Drops attempts that ended up to this time. */
    untilMs: "number",
  },
} as const;

/** Drops the oldest attempts of a key. Only reads and pops, which a full Redis allows. */
export const dropAttemptsScript: Script<typeof signature, number> = defineScript(signature, {
  lua: readLua(new URL("drop-attempts.lua", import.meta.url)),
  answer: replyNumber,
});
