import {
  clockPart,
  defineScript,
  readLua,
  replyFlag,
  replyList,
  replyNumber,
  type Reply,
  type Script,
} from "@konverge/redis";

export interface LookAnswer {
  /** Up to when the times are handled, in ms; the first time, up to now. */
  readonly doneMs: number;
  readonly isPaused: boolean;
}

const signature = {
  name: "workflow-schedule-look",
  keys: ["schedules", "pauses"],
  args: {
    field: "text",
    name: "text",
    times: "text",
    /** What a process without the configuration needs to start its runs (JSON). */
    spec: "text",
    nowMs: "number",
    nextMs: "number",
  },
} as const;

/** Stores that a process has read a schedule. The times that pass during a pause count as handled. */
export const lookAtScheduleScript: Script<typeof signature, LookAnswer> = defineScript(signature, {
  lua: readLua(new URL("look-at-schedule.lua", import.meta.url)),
  include: [clockPart],
  answer: decode,
});

function decode(reply: Reply): LookAnswer {
  const [doneMs, isPaused] = replyList(reply);
  return { doneMs: replyNumber(doneMs), isPaused: replyFlag(isPaused) };
}
