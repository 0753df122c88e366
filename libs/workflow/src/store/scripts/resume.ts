import {
  clockPart,
  defineScript,
  readLua,
  replyTagged,
  replyText,
  replyWord,
  type Reply,
  type Script,
} from "@konverge/redis";
import { endedPart } from "./ended.ts";
import type { Reopened } from "../run-actions.ts";
import { GRACE_MS } from "./clock.ts";
import { movePart } from "./move-run.ts";
import { runSizesPart } from "./run-sizes.ts";

const signature = {
  name: "workflow-resume",
  keys: [
    "run",
    "steps",
    "signals",
    "signalNames",
    "seen",
    "refusals",
    "answers",
    "wakes",
    "endedRuns",
    "holder",
    "fences",
  ],
  args: {
    id: "text",
    /** Of the end of the run. */
    epoch: "text",
    /** Prefix of the names of runs. */
    runRoot: "text",
    /** Prefix of the index by status. */
    statuses: "text",
    /** Author and reason (JSON). */
    author: "text",
    /** How many records are kept. */
    kept: "text",
  },
  /** Fields of steps to drop; of an accepted update also its id and that of its signal, so that it can be sent again. */
  each: { args: { field: "text", update: "text", signal: "text" } },
} as const;

/**
 * Resumes a run that failed or was cancelled behind the records that are kept of it.
 *
 * The epoch grows, so that an execution from before the end cannot write to the run any more.
 */
export const resumeScript: Script<typeof signature, Reopened> = defineScript(signature, {
  lua: readLua(new URL("resume.lua", import.meta.url)),
  include: [endedPart, clockPart, movePart, runSizesPart],
  constants: { GRACE_MS },
  answer: decode,
});

function decode(reply: Reply): Reopened {
  const [kind, holder] = replyTagged(reply);
  return kind === "rejected"
    ? { kind, holder: replyText(holder) }
    : { kind: replyWord(kind, ["resumed", "changed"]) };
}
