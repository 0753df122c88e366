import { clockPart, defineScript, readLua, replyNumber, type Script } from "@konverge/redis";
import { actionLogPart } from "./action-log.ts";

const signature = {
  name: "log-action",
  keys: ["actions"],
  args: {
    /** A JSON object. */
    action: "text",
  },
} as const;

/** Logs an operator action that consists of several commands. */
export const logActionScript: Script<typeof signature, number> = defineScript(signature, {
  lua: readLua(new URL("log-action.lua", import.meta.url)),
  include: [clockPart, actionLogPart],
  answer: replyNumber,
});
