import {
  clockPart,
  defineScript,
  readLua,
  replyList,
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
import { movePart } from "./move-run.ts";
import { pausesPart } from "./pauses.ts";
import { waitsPart } from "./waits.ts";

export type LeaveAnswer =
  | ({ readonly kind: "left" } & FollowerNames)
  /** Another epoch holds the run. Nothing was changed. */
  | { readonly kind: "fenced" };

const signature = {
  name: "workflow-leave",
  each: {
    keys: ENDING_KEYS as readonly EndingKey[],
    args: {
      epoch: "text",
      /** waiting, blocked, compensating, done, failed or cancelled. */
      kind: "text",
      /** Empty for no deadline. */
      untilMs: "text",
      /** The waits (JSON) or empty, why it is blocked, how it fails (JSON), its result or error (JSON). */
      text: "text",
      /** The error that blocks the run (JSON), or empty. */
      blockedError: "text",
      id: "text",
      /** As it was when the run was claimed. */
      wakeSeq: "text",
      retentionMs: "number",
      /** Prefix of the index by status. */
      statuses: "text",
      /** Objects for which the run still waits, separated by spaces. */
      objects: "text",
      /** Names of the signals that it waits for, separated by line breaks. With an empty first line, no other one continues it. */
      awaited: "text",
      /** Workflow and id, as in the index of waits. */
      member: "text",
      /** Prefix of the indexes of waits. */
      waitRoot: "text",
      /** All published values (JSON), or empty to keep them. */
      published: "text",
    },
  },
} as const;

/**
 * Ends executions: each run is waiting, blocked, about to be compensated, or over.
 *
 * What arrived since the claim may still wait for its request, so it stays noted for the sweep.
 */
export const leaveScript: Script<typeof signature, readonly LeaveAnswer[]> = defineScript(
  signature,
  {
    lua: readLua(new URL("leave.lua", import.meta.url)),
    include: [endedPart, childNotePart, clockPart, movePart, pausesPart, waitsPart, endRunPart],
    constants: { GRACE_MS },
    answer: (reply) => replyList(reply).map(decode),
  },
);

function decode(reply: Reply): LeaveAnswer {
  const [kind, ...rest] = replyTagged(reply);
  return kind === "left"
    ? { kind, ...decodeFollowers(rest) }
    : { kind: replyWord(kind, ["fenced"]) };
}
