import { clockPart, defineScript, readLua, replyNumber, type Script } from "@konverge/redis";
import { actionLogPart } from "./action-log.ts";

const signature = {
  name: "pause",
  keys: ["pauses", "actions"],
  args: {
    /** Of the scope. */
    field: "text",
    /** JSON objects. */
    note: "text",
    action: "text",
  },
} as const;

/** Pauses a scope. A pause of the same scope is replaced. Returns 1 for a new pause, 0 for a replaced one. */
export const pauseScript: Script<typeof signature, number> = defineScript(signature, {
  lua: readLua(new URL("pause.lua", import.meta.url)),
  include: [clockPart, actionLogPart],
  answer: replyNumber,
});
