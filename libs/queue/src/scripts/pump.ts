import {
  defineScript,
  readLua,
  replyFlag,
  replyList,
  replyNumber,
  replyTexts,
  type Reply,
  type Script,
} from "@konverge/redis";
import { electedForPart } from "./elected-for.ts";
import { FLOWS_KEPT } from "./rebase.ts";

/** What a pump has to do for one queue. */
export interface PumpAnswer {
  readonly isElected: boolean;
  /** Until the election of another pump ends; 0 for the elected one. */
  readonly electedForMs: number;
  /** Until the next timer is due; -1 if there is none, or if the timers were not examined. */
  readonly waitMs: number;
  /** Whether there are operator actions that workers must carry out: `resuming` or `aborts` exists. */
  readonly ordered: boolean;
  /** Whether keys wait or age, or many flows are left; false if the pump is not elected. */
  readonly hasWaiting: boolean;
  /** Whether jobs are active, or belong to lost workers. */
  readonly hasActive: boolean;
  /** End of the claim of `due`. */
  readonly claimedUntilMs: number;
  /** The claimed keys. */
  readonly due: readonly string[];
}

const signature = {
  name: "pump",
  /** The elected pumps, by queue. */
  keys: ["pumps"],
  args: {
    owner: "text",
    /** Duration of an election. */
    electMs: "number",
    /** Duration of the claim of a timer. */
    claimMs: "number",
    /** Most timers to claim per queue. */
    limit: "number",
  },
  each: {
    /** `timers` and `firing` are sorted by when they are due, in ms. `returned`: the jobs of lost workers. */
    keys: [
      "timers",
      "firing",
      "resuming",
      "aborts",
      "aging",
      "waiting",
      "returned",
      "delayed",
      "active",
      "fair",
    ],
    args: {
      queue: "text",
      /** Whether the process runs attempts of the queue, which an operator can cancel. */
      isActive: "flag",
      /** Whether to claim timers also without being elected. */
      fires: "flag",
    },
  },
} as const;

/**
 * Elects a pump per queue, and claims due timers for it. One call serves all queues of a process. A claim without an
 * acknowledgement (acknowledge.ts) becomes due again, so a crashed pump loses none. A timer armed meanwhile is in the other
 * set, unaffected by the acknowledgement.
 */
export const pumpScript: Script<typeof signature, PumpAnswer[]> = defineScript(signature, {
  lua: readLua(new URL("pump.lua", import.meta.url)),
  include: [electedForPart],
  constants: { FLOWS_KEPT },
  answer: (reply) => replyList(reply).map(decode),
});

function decode(reply: Reply): PumpAnswer {
  const [elected, electedForMs, waitMs, ordered, claimedUntilMs, waiting, active, ...due] =
    replyList(reply);
  return {
    isElected: replyFlag(elected),
    electedForMs: replyNumber(electedForMs),
    waitMs: replyNumber(waitMs),
    ordered: replyNumber(ordered) > 0,
    hasWaiting: replyNumber(waiting) > 0,
    hasActive: replyFlag(active),
    claimedUntilMs: replyNumber(claimedUntilMs),
    due: replyTexts(due),
  };
}
