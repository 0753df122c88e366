import { clockPart, defineScript, readLua, replyFlag, type Script } from "@konverge/redis";
import { actionLogPart } from "./action-log.ts";

const signature = {
  name: "resume",
  keys: ["pauses", "actions", "parked", "resuming"],
  args: {
    /** Of the scope. */
    field: "text",
    /** A JSON object. */
    action: "text",
    claimMs: "number",
  },
} as const;

/**
 * Ends a pause and starts resuming parked keys (unpark.ts): by this process, and after its claim has expired, by any
 * worker. Returns false if the scope was not paused.
 */
export const resumeScript: Script<typeof signature, boolean> = defineScript(signature, {
  lua: readLua(new URL("resume.lua", import.meta.url)),
  include: [clockPart, actionLogPart],
  answer: replyFlag,
});
