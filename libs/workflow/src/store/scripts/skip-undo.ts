import { clockPart, defineScript, readLua, replyWord, type Script } from "@konverge/redis";
import { endedPart } from "./ended.ts";
import { GRACE_MS } from "./clock.ts";

/** `active`: the run is not being undone. Only `skipped` means a change. */
export type SkipUndoAnswer = "skipped" | "active" | "ended" | "missing";

const signature = {
  name: "workflow-skip-undo",
  keys: ["run", "steps", "wakes"],
  args: {
    id: "text",
    /** Name of the record of the undo. */
    undo: "text",
    /** The record (JSON). */
    record: "text",
  },
} as const;

/** Records that the undo of a step is skipped, unless the undo was recorded before. */
export const skipUndoScript: Script<typeof signature, SkipUndoAnswer> = defineScript(signature, {
  lua: readLua(new URL("skip-undo.lua", import.meta.url)),
  include: [endedPart, clockPart],
  constants: { GRACE_MS },
  answer: (reply) => replyWord(reply, ["skipped", "active", "ended", "missing"]),
});
