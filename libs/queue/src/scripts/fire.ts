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
 * Claims due timers. A claim that nobody acknowledges (ZREM from `firing`) is due again, so that a pump that dies loses none;
 * a timer armed meanwhile lives in the other set and is not touched by the acknowledgement.
 */
export const fireScript: Script<typeof signature, FireAnswer> = defineScript(signature, {
  lua: readLua(new URL("fire.lua", import.meta.url)),
  answer: decode,
});

function decode(reply: Reply): FireAnswer {
  const [waitMs, ordered, ...due] = replyList(reply);
  return { waitMs: replyNumber(waitMs), ordered: replyNumber(ordered) > 0, due: replyTexts(due) };
}
