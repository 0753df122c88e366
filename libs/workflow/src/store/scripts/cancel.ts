import { defineScript, readLua, replyWord, type Script } from "@konverge/redis";
import { endedPart } from "./ended.ts";
import { noteCancelPart } from "./note-cancel.ts";
import { pausesPart } from "./pauses.ts";

const signature = {
  name: "workflow-cancel",
  keys: ["run", "wakes", "cancelling"],
  args: {
    id: "text",
    /** Author and reason (JSON). */
    request: "text",
    /** Prefix of the index by status. */
    statuses: "text",
    /** Also ends a pause, so that the steps are undone. */
    resumes: "flag",
  },
} as const;

export type CancelAnswer =
  | "requested"
  /** Nothing was changed: an earlier cancellation was not thrown yet, the run is being undone, or it has ended. */
  | "pending"
  | "compensating"
  | "ended"
  | "missing";

/** Requests the cancellation of a run, also again after the run has caught the one before. */
export const cancelScript: Script<typeof signature, CancelAnswer> = defineScript(signature, {
  lua: readLua(new URL("cancel.lua", import.meta.url)),
  include: [endedPart, noteCancelPart, pausesPart],
  answer: (reply) => replyWord(reply, ["requested", "pending", "compensating", "ended", "missing"]),
});
