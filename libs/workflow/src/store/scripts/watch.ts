import { clockPart, defineScript, readLua, replyWord, type Script } from "@konverge/redis";
import { endedPart } from "./ended.ts";
import { waitsPart } from "./waits.ts";

const signature = {
  name: "workflow-watch",
  keys: ["run", "waitKinds", "rechecks"],
  args: {
    epoch: "text",
    /** Workflow and id, as in the index of waits. */
    member: "text",
    id: "text",
    /** Prefix of the indexes of waits. */
    waitRoot: "text",
    /** Separated by spaces. */
    objects: "text",
  },
} as const;

/**
 * Adds objects that a run waits for to the index before the run reads them, so that a later change finds the run there.
 * `fenced`: another epoch holds the run, or it has ended, and nothing was changed.
 */
export const watchScript: Script<typeof signature, "watched" | "fenced"> = defineScript(signature, {
  lua: readLua(new URL("watch.lua", import.meta.url)),
  include: [endedPart, clockPart, waitsPart],
  answer: (reply) => replyWord(reply, ["watched", "fenced"]),
});
