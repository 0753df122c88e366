import { defineScript, readLua, replyTexts, type Script } from "@konverge/redis";
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

/**
 * Returns objects that should have been taken: the submitter died before it requested them, or the request was lost. Ends
 * waiting mutations after their deadlines, and removes those that are kept no longer.
 */
export const sweepScript: Script<typeof signature, readonly string[]> = defineScript(signature, {
  lua: readLua(new URL("sweep.lua", import.meta.url)),
  include: [endMutationPart],
  constants: { GRACE_MS },
  answer: replyTexts,
});
