import {
  clockPart,
  defineScript,
  readLua,
  replyFlag,
  replyList,
  type Script,
} from "@konverge/redis";

const signature = {
  name: "renew",
  args: { leaseMs: "number" },
  each: { keys: ["key"], args: { epoch: "text", owner: "text" } },
} as const;

/**
 * Renews key leases, together with BullMQ's locks. Returns, per attempt, false when it has ended or another has taken
 * over. Compares the owner too: after a failover that lost writes, two attempts can have the same epoch.
 */
export const renewScript: Script<typeof signature, boolean[]> = defineScript(signature, {
  lua: readLua(new URL("renew.lua", import.meta.url)),
  include: [clockPart],
  answer: (reply) => replyList(reply).map(replyFlag),
});
