import {
  defineScript,
  readLua,
  replyList,
  replyNumber,
  replyWord,
  type Reply,
  type Script,
} from "@konverge/redis";
import { anyAbortPart } from "./any-abort.ts";
import { endAttemptPart } from "./end-attempt.ts";

export interface Ended {
  readonly fenced: boolean;
  /** The priority of the job that waits from now on, or 0 if there is none. */
  readonly priority: number;
}

const signature = {
  name: "end",
  keys: ["timers", "fair", "aging", "index", "dead", "aborts"],
  args: {
    /** Attempts kept per key. */
    kept: "number",
    retentionMs: "number",
  },
  each: {
    /** `list`: of the attempts of the key. */
    keys: ["key", "list"],
    args: {
      epoch: "text",
      owner: "text",
      outcome: "text",
      /** Number of the last request that it covers. */
      covered: "text",
      /** For the list of attempts; its head is put before it. */
      entry: "text",
      /**
       * Empty for an attempt that succeeded and left nothing to reset or arm. Otherwise, with commas: the attempts, the new
       * failures and conflicts (empty for unchanged), final (1 or 0), hold (empty, backoff, deferred), delay in ms, timer in ms
       * or empty, dead (1 or 0), and for a dead key the versions that it read or wrote, between spaces.
       */
      rest: "text",
    },
  },
} as const;

/** Stores how attempts ended. */
export const endScript: Script<typeof signature, Ended[]> = defineScript(signature, {
  lua: readLua(new URL("end.lua", import.meta.url)),
  include: [anyAbortPart, endAttemptPart],
  answer: (reply) => replyList(reply).map(decodeEnded),
});

export function decodeEnded(reply: Reply): Ended {
  const [state, priority] = replyList(reply);
  return {
    fenced: replyWord(state, ["stored", "fenced"]) === "fenced",
    priority: replyNumber(priority),
  };
}
