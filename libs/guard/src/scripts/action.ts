import { BREAKER } from "@konverge/core";
import { defineScript, readLua, replyWord, type Script } from "@konverge/redis";
import { setLimitsPart } from "./set-limits.ts";

const signature = {
  name: "action",
  keys: ["state", "failingWorkers", "transitions"],
  args: {
    channel: "text",
    /** setRate, isolate or reset. */
    action: "text",
    by: "text",
    reason: "text",
    /** For setRate; empty restores the configured rate. */
    rate: "text",
  },
} as const;

/** Carries out an operator action on a guard. Returns `unset`, and changes nothing, while no worker has stored limits. */
export const actionScript: Script<typeof signature, "unset" | "changed"> = defineScript(signature, {
  lua: readLua(new URL("action.lua", import.meta.url)),
  constants: { BREAKER },
  include: [setLimitsPart],
  answer: (reply) => replyWord(reply, ["unset", "changed"]),
});
