import { defined } from "@konverge/core";
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
import { MAX_QUEUED } from "../run-actions.ts";
import { childNotePart } from "./child-note.ts";
import { GRACE_MS } from "./clock.ts";
import { forgetPart } from "./forget-runs.ts";
import { lastRunPart } from "./last-run.ts";
import { linePart } from "./line.ts";
import { movePart } from "./move-run.ts";
import { noteCancelPart } from "./note-cancel.ts";

interface LastEnd {
  readonly status: string;
  /** The result or error (JSON), or empty. */
  readonly text: string;
}

export type StartAnswer =
  | { readonly kind: "exists" }
  | {
      readonly kind: "attached" | "rejected";
      readonly holder: string;
      /** Of a run that has ended. */
      readonly end?: LastEnd;
    }
  /** `replaces`: id of the active run whose cancellation was requested, or empty. */
  | { readonly kind: "created"; readonly replaces: string }
  /** The queue of the key is full. `holder` is its last run. */
  | { readonly kind: "full"; readonly holder: string };

const signature = {
  name: "workflow-start",
  keys: [
    "run",
    "answers",
    "answeredIds",
    "logs",
    "wakes",
    "index",
    "endedRuns",
    "cancelling",
    "fences",
    "holder",
    "last",
    "lastChecks",
  ],
  args: {
    id: "text",
    version: "text",
    /** JSON, or empty. */
    input: "text",
    /** Or empty. */
    key: "text",
    /** attach, reject, supersede or queue. */
    onExisting: "text",
    /** Most runs that wait for the active run with the key. */
    maxQueued: "number",
    /** All empty for a run without a parent. */
    parentWorkflow: "text",
    parent: "text",
    parentStep: "text",
    /** Round of the parent; empty for the first. */
    parentRound: "text",
    /** Names of the parent's hashes. */
    parentRun: "text",
    parentSteps: "text",
    /** Prefix of the names of runs. */
    runRoot: "text",
    /** Prefix of the index by status. */
    statuses: "text",
    /** The caller, or empty. */
    by: "text",
    /** The run that this one retries, with author and reason (JSON), or empty. */
    retry: "text",
    /** The time of the schedule, or empty. */
    scheduledAt: "text",
    /** Of the object that the run is for, or empty. */
    uid: "text",
    /** Of the object, or empty. */
    generation: "text",
    /** Key of the object in its controller's queue, or empty. Without it, the end is kept only as long as the run. */
    object: "text",
    /** Key to request when the run ends, or empty. */
    notify: "text",
    /** A JSON object, or empty. */
    labels: "text",
  },
} as const;

/**
 * Creates a run, unless its id exists or its key is taken. An active run without a parent becomes the child of the one that
 * starts it again.
 *
 * A run whose end is kept does not start again. A run for an older generation than that of the last run with its key does not
 * start either, even if the last run has ended: its request is outdated. A run that replaces another waits for the end of the
 * other, which is cancelled in the same step; so are the runs that wait for it. A queued run waits as well, and cancels nothing.
 */
export const startScript: Script<typeof signature, StartAnswer> = defineScript(signature, {
  lua: readLua(new URL("start.lua", import.meta.url)),
  include: [
    endedPart,
    clockPart,
    childNotePart,
    noteCancelPart,
    movePart,
    lastRunPart,
    linePart,
    forgetPart,
  ],
  constants: { GRACE_MS, MAX_LINE: MAX_QUEUED + 1 },
  answer: decode,
});

function decode(reply: Reply): StartAnswer {
  const [kind, id, status, text] = replyTagged(reply);
  if (kind === "created") return { kind, replaces: replyText(id) };
  if (kind === "exists") return { kind };
  if (kind === "full") return { kind, holder: replyText(id) };
  const end =
    status === undefined ? undefined : { status: replyText(status), text: replyText(text) };
  return {
    kind: replyWord(kind, ["attached", "rejected"]),
    holder: replyText(id),
    ...defined({ end }),
  };
}
