import { LIMIT } from "@konverge/core";
import {
  defineScript,
  readLua,
  replyTagged,
  replyText,
  replyWord,
  type Script,
} from "@konverge/redis";

interface ConfigureLimitAnswer {
  readonly kind: "same" | "changed";
  /** The worker that stored the previous rules; empty the first time. */
  readonly by: string;
}

const signature = {
  name: "configure-limit",
  keys: ["limits", "limit"],
  args: {
    name: "text",
    intervalUs: "text",
    burst: "text",
    concurrency: "text",
    by: "text",
    /** The options as JSON, for users. */
    options: "text",
  },
} as const;

/** Stores the rules of a limit. The last configuration counts. */
export const configureLimitScript: Script<typeof signature, ConfigureLimitAnswer> = defineScript(
  signature,
  {
    lua: readLua(new URL("configure-limit.lua", import.meta.url)),
    constants: { LIMIT },
    answer: (reply) => {
      const [kind, by] = replyTagged(reply);
      return { kind: replyWord(kind, ["same", "changed"]), by: replyText(by) };
    },
  },
);
