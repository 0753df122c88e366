import { clockPart, defineScript, readLua, replyWord, type Script } from "@konverge/redis";
import { endedPart } from "./ended.ts";
import { ANSWERS_KEPT_MS, MAX_KEPT_ANSWER, MOST_ANSWERED } from "../run-updates.ts";
import { GRACE_MS } from "./clock.ts";
import { codeFitsPart } from "./code-fits.ts";
import { movePart } from "./move-run.ts";
import { pausesPart } from "./pauses.ts";
import { waitsPart } from "./waits.ts";

const signature = {
  name: "workflow-continue",
  keys: ["run", "steps", "answers", "answeredIds", "wakes", "codes", "waitKinds", "rechecks"],
  args: {
    epoch: "text",
    id: "text",
    /** Of the code that continues the run. */
    version: "number",
    /** JSON, or empty. */
    input: "text",
    /** Prefix of the index by status. */
    statuses: "text",
    /** Workflow and id, as in the index of waits. */
    member: "text",
    /** Prefix of the indexes of waits. */
    waitRoot: "text",
    /** All published values (JSON), or empty to keep them. */
    published: "text",
  },
} as const;

/**
 * Begins the next round of a run: with another input, an empty journal, and the newest version that a live worker has. Signals,
 * published values, labels, key and parent stay. The epoch is raised, so that no execution of this round changes the next one.
 * `fenced`: another epoch holds the run, or it has ended.
 */
export const continueScript: Script<typeof signature, "continued" | "fenced"> = defineScript(
  signature,
  {
    lua: readLua(new URL("continue.lua", import.meta.url)),
    include: [endedPart, clockPart, codeFitsPart, movePart, pausesPart, waitsPart],
    constants: { GRACE_MS, ANSWERS_KEPT_MS, MAX_KEPT_ANSWER, MOST_ANSWERED },
    answer: (reply) => replyWord(reply, ["continued", "fenced"]),
  },
);
