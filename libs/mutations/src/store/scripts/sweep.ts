import { defineScript, readLua, replyTexts, type Reply, type Script } from "@konverge/redis";
import { GRACE_MS } from "./clock.ts";
import { endMutationPart } from "./end-mutation.ts";

const signature = {
  name: "mutation-sweep",
  keys: ["objects", "ended", "deadlines"],
  args: {
    root: "text",
    /** Most objects to return, and most mutations to end and to forget. */
    most: "number",
    retentionMs: "number",
    /** The rest of the verdict of expired mutations (JSON). */
    expiry: "text",
  },
} as const;

export interface Swept {
  readonly due: readonly string[];
  /** True if a list was longer than `most`. */
  readonly isMore: boolean;
}

/**
 * Returns objects that should have been taken: the submitter died before it requested them, or the request was lost. Ends
 * waiting mutations after their deadlines, and removes those that are kept no longer.
 */
export const sweepScript: Script<typeof signature, Swept> = defineScript(signature, {
  lua: readLua(new URL("sweep.lua", import.meta.url)),
  include: [endMutationPart],
  constants: { GRACE_MS },
  answer: decode,
});

function decode(reply: Reply): Swept {
  const [rest, ...due] = replyTexts(reply);
  return { due, isMore: rest === "more" };
}
