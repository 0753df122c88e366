import { defineScript, readLua, replyList, replyWord, type Script } from "@konverge/redis";
import { endedPart } from "./ended.ts";
import { pausesPart } from "./pauses.ts";
import { runSlotsPart } from "./run-slots.ts";

const signature = {
  name: "workflow-pause-runs",
  keys: ["wakes", "rechecks"],
  args: {
    /** Author and reason (JSON). */
    request: "text",
    /** Status that the runs must have, or empty. */
    wanted: "text",
    /** Prefix of the names of runs. */
    runRoot: "text",
    /** Prefix of the index by status. */
    statuses: "text",
  },
  each: { args: { id: "text" } },
} as const;

const ANSWERS = ["paused", "pausing", "unchanged", "changed", "ended", "missing"] as const;

/** `unchanged`: the run was paused before. `changed`: it has another status than the wanted one. */
export type PauseAnswer = (typeof ANSWERS)[number];

/** Pauses runs. Those with an execution at work are `pausing` until it has released them. */
export const pauseRunsScript: Script<typeof signature, readonly PauseAnswer[]> = defineScript(
  signature,
  {
    lua: readLua(new URL("pause-runs.lua", import.meta.url)),
    include: [endedPart, pausesPart, runSlotsPart],
    answer: (reply) => replyList(reply).map((each) => replyWord(each, ANSWERS)),
  },
);
