import {
  clockPart,
  defineScript,
  readLua,
  replyNumber,
  replyTexts,
  type Script,
} from "@konverge/redis";

export interface NotedProgress {
  readonly id: string;
  readonly progressMs: number;
  /** Kinds of state that wait for an operator, separated by spaces. */
  readonly held: string;
  /** True if the caller must record the progress outside of Redis. */
  readonly isDue: boolean;
}

const signature = {
  name: "note-progress",
  /** Hash of the restore state. */
  keys: ["state"],
  args: {
    /** The highest progress that the caller knows, in epoch ms; 0 if it knows none. */
    known: "number",
    /** The id that this progress belongs to; empty if the caller has read it from this Redis itself. */
    knownId: "text",
    tolerance: "number",
    /** True if other data of the cluster is too old. */
    isPartial: "flag",
    /** The new progress is not below this, in epoch ms. */
    atLeast: "number",
    /** The id of a Redis without one. */
    newId: "text",
    /** The kinds of state that a restore holds. */
    kinds: "text",
    worker: "text",
    /** Time between two records outside of Redis, in ms; 0 for a caller that records nothing. */
    recordMs: "number",
  },
} as const;

/**
 * Advances the progress of the data. If the data is older than the caller knows, by more than `tolerance`, Redis was restored: holds
 * all kinds of state until an operator accepts them. An empty Redis is not held.
 */
export const noteProgressScript: Script<typeof signature, NotedProgress> = defineScript(signature, {
  lua: readLua(new URL("note-progress.lua", import.meta.url)),
  include: [clockPart],
  answer: (reply) => {
    const [id = "", progress, held = "", isDue] = replyTexts(reply);
    return {
      id,
      progressMs: replyNumber(progress),
      held,
      isDue: Number(isDue) === 1,
    };
  },
});
