import { defineScript, readLua, replyFlag, replyList, type Script } from "@konverge/redis";

const signature = {
  name: "renew",
  args: { leaseMs: "number" },
  each: { keys: ["key"], args: { epoch: "text" } },
} as const;

/**
 * Renews key leases, together with BullMQ's locks. Returns, per attempt, false when its epoch has ended or another has taken
 * over.
 */
export const renewScript: Script<typeof signature, boolean[]> = defineScript(signature, {
  lua: readLua(new URL("renew.lua", import.meta.url)),
  answer: (reply) => replyList(reply).map(replyFlag),
});
