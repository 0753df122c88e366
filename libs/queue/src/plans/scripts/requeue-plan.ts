import { defineScript, readLua, replyFlag, type Script } from "@konverge/redis";

const signature = {
  name: "requeue-plan",
  keys: [
    "plan",
    /** Delays the next check while the plan waits. */
    "lease",
    /** The requests that wait for a worker. */
    "list",
  ],
  args: {
    /** The entry of the list. */
    request: "text",
    checkMs: "number",
    /** Retention of the list. */
    keptMs: "number",
    mostWaiting: "number",
  },
} as const;

/**
 * Adds the request of a waiting plan to the front of its list if it is missing there, unless the list is full. Returns true if
 * it was added. A worker that still begins the plan is not disturbed: a plan begins once.
 */
export const requeuePlanScript: Script<typeof signature, boolean> = defineScript(signature, {
  lua: readLua(new URL("requeue-plan.lua", import.meta.url)),
  answer: replyFlag,
});
