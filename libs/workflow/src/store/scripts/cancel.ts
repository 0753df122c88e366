import { defineScript, readLua, replyWord, type Script } from "@konverge/redis";
import { noteCancelPart } from "./note-cancel.ts";

const signature = {
  name: "workflow-cancel",
  keys: ["run", "wakes", "cancelling"],
  args: {
    id: "text",
    /** Author and reason (JSON). */
    request: "text",
  },
} as const;

/** Requests the cancellation of a run. Returns `requested` also if it was requested before. */
export const cancelScript: Script<typeof signature, "requested" | "ended" | "missing"> =
  defineScript(signature, {
    lua: readLua(new URL("cancel.lua", import.meta.url)),
    include: [noteCancelPart],
    answer: (reply) => replyWord(reply, ["requested", "ended", "missing"]),
  });
