import {
  clockPart,
  defineScript,
  readLua,
  replyFlag,
  replyList,
  replyNumber,
  type Script,
} from "@konverge/redis";
import { isPausedPart } from "./is-paused.ts";

interface UnparkAnswer {
  readonly resumed: number;
  readonly more: boolean;
}

const signature = {
  name: "unpark",
  keys: ["resuming", "parked", "pauses", "firing"],
  args: {
    /** Root of the names of the keys' hashes. */
    hashes: "text",
    /** Most keys to examine. */
    limit: "number",
    /** 0 to do nothing while another process claims it. */
    claimMs: "number",
  },
} as const;

/**
 * Takes a step in resuming parked keys: those without a pause become claimed timers whose claim has ended, so a pump requests
 * them before they are removed. The timers of the keys stay.
 * The text `resuming` is the end of the resuming process's claim, a space, and the last examined key. A key parked meanwhile
 * belongs to another pause, so one pass is enough; another resume restarts it.
 */
export const unparkScript: Script<typeof signature, UnparkAnswer> = defineScript(signature, {
  lua: readLua(new URL("unpark.lua", import.meta.url)),
  include: [clockPart, isPausedPart],
  answer: (reply) => {
    const [resumed, more] = replyList(reply);
    return { resumed: replyNumber(resumed), more: replyFlag(more) };
  },
});
