import { defineScript, readLua, replyFlag, type Script } from "@konverge/redis";

const signature = {
  name: "workflow-schedule-pass",
  keys: ["schedules"],
  args: {
    field: "text",
    dueMs: "number",
    /** Id of the run that was started for this time, or empty. */
    run: "text",
  },
} as const;

/** Stores that a time is dealt with. Returns false if it was before, or if the schedule is unknown. */
export const passScheduleScript: Script<typeof signature, boolean> = defineScript(signature, {
  lua: readLua(new URL("pass-schedule.lua", import.meta.url)),
  answer: replyFlag,
});
