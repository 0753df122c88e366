import { defineScript, readLua, replyNumber, type Script } from "@konverge/redis";

const signature = {
  name: "acknowledge",
  /** Claimed timers by the end of their claim, in ms. */
  keys: ["firing"],
  args: { claimedUntilMs: "number" },
  each: { args: { member: "text" } },
} as const;

/** Removes timers that were requested. One that another pump has claimed since stays: its request may not be made yet. */
export const acknowledgeScript: Script<typeof signature, number> = defineScript(signature, {
  lua: readLua(new URL("acknowledge.lua", import.meta.url)),
  answer: replyNumber,
});
