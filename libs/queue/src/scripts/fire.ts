import {
  defineScript,
  readLua,
  replyList,
  replyNumber,
  replyTexts,
  type Reply,
  type Script,
} from "@konverge/redis";

interface FireAnswer {
  /** Until the next timer is due; -1 if there is none. */
  readonly waitMs: number;
  /** Whether there are operator actions that workers must carry out: `resuming` or `aborts` exists. */
  readonly ordered: boolean;
  /** The claimed keys. */
  readonly due: readonly string[];
}

const signature = {
  name: "fire",
  /** `timers` and `firing` are sorted by when they are due, in ms. */
  keys: ["timers", "firing", "resuming", "aborts"],
  args: {
    /** Most timers to claim. */
    limit: "number",
    claimMs: "number",
  },
} as const;

/**
 * Claims due timers. A claim without an acknowledgement (ZREM from `firing`) becomes due again, so a crashed pump loses none.
 * A timer armed meanwhile is in the other set, unaffected by the acknowledgement.
 */
export const fireScript: Script<typeof signature, FireAnswer> = defineScript(signature, {
  lua: readLua(new URL("fire.lua", import.meta.url)),
  answer: decode,
});

function decode(reply: Reply): FireAnswer {
  const [waitMs, ordered, ...due] = replyList(reply);
  return { waitMs: replyNumber(waitMs), ordered: replyNumber(ordered) > 0, due: replyTexts(due) };
}
