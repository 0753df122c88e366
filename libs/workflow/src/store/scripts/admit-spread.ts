import { clockPart, defineScript, readLua, replyWord, type Script } from "@konverge/redis";
import { endedPart } from "./ended.ts";
import type { SpreadState } from "../run-journal-store.ts";
import { childNotePart } from "./child-note.ts";
import { GRACE_MS } from "./clock.ts";

const signature = {
  name: "workflow-admit-spread",
  keys: ["run", "steps", "wakes"],
  args: {
    /** Of the run. */
    id: "text",
    step: "text",
    /** These three identify the round in which the step was called. */
    createdAt: "text",
    round: "text",
    reopened: "text",
    /** Holds the step, and makes the run due. */
    always: "flag",
  },
} as const;

/** Returns whether a spread step may begin a try, and notes in its run that it may not. */
export const admitSpreadScript: Script<typeof signature, SpreadState> = defineScript(signature, {
  lua: readLua(new URL("admit-spread.lua", import.meta.url)),
  include: [endedPart, clockPart, childNotePart],
  constants: { GRACE_MS },
  answer: (reply) => replyWord(reply, ["active", "held", "over"]),
});
