import {
  defineScript,
  readLua,
  replyFlag,
  replyList,
  replyNumber,
  type Script,
} from "@konverge/redis";
import { electedForPart } from "./elected-for.ts";

/** The election of a queue's pump. */
export interface Election {
  /** Time until the election of another pump ends, in ms; 0 if no other pump is elected. */
  readonly electedForMs: number;
  /** Whether jobs were active at the last round of the elected pump; true if unknown. */
  readonly hasActive: boolean;
}

const signature = {
  name: "elections",
  /** The elected pumps, by queue. */
  keys: ["pumps"],
  args: {
    owner: "text",
    /** Duration of an election. */
    electMs: "number",
  },
  each: { args: { queue: "text" } },
} as const;

/** Reads the elections of queues. Most pumps of an idle fleet need only this: one `HMGET` for all queues of a process. */
export const electionsScript: Script<typeof signature, Election[]> = defineScript(signature, {
  lua: readLua(new URL("elections.lua", import.meta.url)),
  include: [electedForPart],
  answer: (reply) =>
    replyList(reply).map((each) => {
      const [electedForMs, hasActive] = replyList(each);
      return { electedForMs: replyNumber(electedForMs), hasActive: replyFlag(hasActive) };
    }),
});
