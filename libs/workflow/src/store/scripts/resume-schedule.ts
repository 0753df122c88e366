import { defineScript, readLua, replyFlag, type Script } from "@konverge/redis";

const signature = {
  name: "workflow-schedule-resume",
  keys: ["schedules", "pauses"],
  args: {
    name: "text",
    nowMs: "number",
  },
} as const;

/** Ends a pause; the times that passed during it count as handled. Returns false if the schedule was not paused. */
export const resumeScheduleScript: Script<typeof signature, boolean> = defineScript(signature, {
  lua: readLua(new URL("resume-schedule.lua", import.meta.url)),
  answer: replyFlag,
});
