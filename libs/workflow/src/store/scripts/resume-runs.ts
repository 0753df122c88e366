import { defineScript, readLua, replyList, replyWord, type Script } from "@konverge/redis";
import { endedPart } from "./ended.ts";
import { pausesPart } from "./pauses.ts";

const signature = {
  name: "workflow-resume-runs",
  keys: ["wakes"],
  args: {
    /** Status that the runs must have, or empty. */
    wanted: "text",
    /** Prefix of the names of runs. */
    runRoot: "text",
    /** Prefix of the index by status. */
    statuses: "text",
  },
  each: { args: { id: "text" } },
} as const;

const ANSWERS = ["resumed", "unchanged", "changed", "ended", "missing"] as const;

/** `unchanged`: the run is not paused. `changed`: it has another status than the wanted one. */
export type ResumeAnswer = (typeof ANSWERS)[number];

/** Ends the pauses of runs. Each gets the status that it had, and is noted for the sweep in case the caller does not wake it. */
export const resumeRunsScript: Script<typeof signature, readonly ResumeAnswer[]> = defineScript(
  signature,
  {
    lua: readLua(new URL("resume-runs.lua", import.meta.url)),
    include: [endedPart, pausesPart],
    answer: (reply) => replyList(reply).map((each) => replyWord(each, ANSWERS)),
  },
);
