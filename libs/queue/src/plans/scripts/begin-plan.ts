import { defineScript, readLua, replyFlag, type Script } from "@konverge/redis";

const signature = {
  name: "begin-plan",
  keys: ["plan", "lease"],
  args: {
    /** Identifies this run, so that the call can be repeated. */
    run: "text",
    leaseMs: "number",
    runningMs: "number",
  },
} as const;

/** Marks a waiting plan as running. Returns false if another run has begun it, or if the plan does not exist. */
export const beginPlanScript: Script<typeof signature, boolean> = defineScript(signature, {
  lua: readLua(new URL("begin-plan.lua", import.meta.url)),
  answer: replyFlag,
});
