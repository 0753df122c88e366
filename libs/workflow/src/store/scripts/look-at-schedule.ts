import { defineScript, readLua, replyNumber, type Script } from "@konverge/redis";
import { clockPart } from "./clock.ts";

const signature = {
  name: "workflow-schedule-look",
  keys: ["schedules"],
  args: {
    field: "text",
    name: "text",
    times: "text",
    workflow: "text",
    nowMs: "number",
    nextMs: "number",
  },
} as const;

/** Stores that a process has read a schedule. Returns up to when its times are dealt with, in ms; the first time, up to now. */
export const lookAtScheduleScript: Script<typeof signature, number> = defineScript(signature, {
  lua: readLua(new URL("look-at-schedule.lua", import.meta.url)),
  include: [clockPart],
  answer: replyNumber,
});
