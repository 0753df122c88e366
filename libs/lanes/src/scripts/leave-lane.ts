import { clockPart, defineScript, readLua, replyFlag, type Script } from "@konverge/redis";

const signature = {
  name: "leave-lane",
  keys: ["lane", "waiting"],
  args: {
    process: "text",
    holdMs: "number",
    /** Or empty. */
    carry: "text",
    /** Of the carry. */
    ageMs: "number",
    /** Prefix of the channels. */
    channels: "text",
    /** What is published there. */
    message: "text",
    /** A writer outside the lane was seen. */
    stranger: "flag",
  },
} as const;

/** Leaves a lane to the next process that waits, and wakes it. Returns false, and changes nothing, if the lane was lost. */
export const leaveLaneScript: Script<typeof signature, boolean> = defineScript(signature, {
  lua: readLua(new URL("leave-lane.lua", import.meta.url)),
  include: [clockPart],
  answer: replyFlag,
});
