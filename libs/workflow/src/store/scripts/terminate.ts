import {
  clockPart,
  defineScript,
  readLua,
  replyTagged,
  replyWord,
  type Reply,
  type Script,
} from "@konverge/redis";
import { endedPart } from "./ended.ts";
import { childNotePart } from "./child-note.ts";
import { GRACE_MS } from "./clock.ts";
import { ENDING_KEYS, endRunPart, type EndingKey } from "./end-run.ts";
import { decodeFollowers, type FollowerNames } from "./followers.ts";
import { linePart } from "./line.ts";
import { waitsPart } from "./waits.ts";

export type TerminateAnswer =
  /** `ended`: the run had ended before. */
  | ({ readonly kind: "terminated" | "ended" } & FollowerNames)
  | { readonly kind: "missing" }
  /** With `isQueued`: the run is not queued behind another one. */
  | { readonly kind: "active" };

const signature = {
  name: "workflow-terminate",
  keys: [...ENDING_KEYS, "fences"] as readonly (EndingKey | "fences")[],
  args: {
    id: "text",
    /** Author and reason (JSON). */
    request: "text",
    /** The error of the run (JSON). */
    error: "text",
    /** Only if the run is queued behind another one; it is then cancelled, not terminated. */
    isQueued: "flag",
    /** Used until a worker has stored the retention of the workflow. */
    retentionMs: "number",
    /** Prefix of the names of runs. */
    runRoot: "text",
    /** Prefix of the index by status. */
    statuses: "text",
    /** Workflow and id, as in the index of waits. */
    member: "text",
    /** Prefix of the indexes of waits. */
    waitRoot: "text",
  },
} as const;

/**
 * Ends a run in any status, without its undo. The epoch grows, so that an execution at work records nothing after it.
 *
 * A run that waits for the end of another one with its key leaves the key to that one.
 */
export const terminateScript: Script<typeof signature, TerminateAnswer> = defineScript(signature, {
  lua: readLua(new URL("terminate.lua", import.meta.url)),
  include: [endedPart, childNotePart, clockPart, waitsPart, linePart, endRunPart],
  constants: { GRACE_MS },
  answer: decode,
});

function decode(reply: Reply): TerminateAnswer {
  const [kind, ...rest] = replyTagged(reply);
  return kind === "terminated" || kind === "ended"
    ? { kind, ...decodeFollowers(rest) }
    : { kind: replyWord(kind, ["missing", "active"]) };
}
