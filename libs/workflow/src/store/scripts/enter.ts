import { defineScript, readLua, replyWord, type Script } from "@konverge/redis";
import { endedPart } from "./ended.ts";
import { movePart } from "./move-run.ts";
import { pausesPart } from "./pauses.ts";
import { runSlotsPart } from "./run-slots.ts";

const signature = {
  name: "workflow-enter",
  keys: ["run", "steps", "wakes"],
  args: {
    epoch: "text",
    id: "text",
    /** Number of slots per group, if no worker has set it. */
    slots: "number",
    group: "text",
    /** Workflow and id. */
    member: "text",
    /** Prefix of the index by status. */
    statuses: "text",
  },
} as const;

/**
 * Takes a slot of its group for a run. Without a free one, the run waits in the order of the starts, and the execution has left
 * it. `cancelled`: the run was cancelled before it got a slot, and has not begun.
 */
export const enterScript: Script<typeof signature, "entered" | "waiting" | "cancelled" | "fenced"> =
  defineScript(signature, {
    lua: readLua(new URL("enter.lua", import.meta.url)),
    include: [endedPart, movePart, pausesPart, runSlotsPart],
    answer: (reply) => replyWord(reply, ["entered", "waiting", "cancelled", "fenced"]),
  });
