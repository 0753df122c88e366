import { defineScript, readLua, replyWord, type Script } from "@konverge/redis";

const signature = {
  name: "lead-notifications",
  keys: ["leader", "told"],
  args: {
    process: "text",
    ttlMs: "text",
    /** How long the reported faults of a subscription are kept after its last leader. */
    toldTtlMs: "text",
  },
} as const;

/** Takes or renews the right to send notifications. `other`: another process has it. */
export const leadNotificationsScript: Script<typeof signature, "new" | "kept" | "other"> =
  defineScript(signature, {
    lua: readLua(new URL("lead-notifications.lua", import.meta.url)),
    answer: (reply) => replyWord(reply, ["new", "kept", "other"]),
  });
