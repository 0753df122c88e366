import {
  defineScript,
  readLua,
  replyList,
  replyNumber,
  replyText,
  type Reply,
  type Script,
} from "@konverge/redis";
import { setLimitsPart } from "./set-limits.ts";

interface ConfigureAnswer {
  readonly changed: boolean;
  readonly revision: number;
  /** The limits before and the worker that stored them; both are empty the first time. */
  readonly limits: string;
  readonly by: string;
}

const signature = {
  name: "configure",
  keys: ["state"],
  args: {
    by: "text",
    /** "rate burst minRate ttlMs maxWaitMs", and "failures calls failedShare openMs maxOpenMs" of the breaker */
    limits: "text",
    isLoss: "flag",
    /** Existing limits stay. */
    keepsLimits: "flag",
  },
} as const;

/** Stores the limits that a worker is configured with. */
export const configureScript: Script<typeof signature, ConfigureAnswer> = defineScript(signature, {
  lua: readLua(new URL("configure.lua", import.meta.url)),
  include: [setLimitsPart],
  answer: decode,
});

function decode(reply: Reply): ConfigureAnswer {
  const [kind, revision, limits, by] = replyList(reply);
  return {
    changed: kind === "changed",
    revision: replyNumber(revision),
    limits: replyText(limits),
    by: replyText(by),
  };
}
