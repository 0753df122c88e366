import { defineScript, readLua, replyFlag, type Script } from "@konverge/redis";

const signature = {
  name: "compose-notification",
  keys: ["leader", "told", "groups", "waiting", "messages", "recent"],
  args: {
    process: "text",
    subscription: "text",
    /** The message; empty if the receiver gets none. */
    id: "text",
    content: "text",
    atMs: "text",
    /** Messages that are kept. */
    most: "number",
  },
  each: {
    args: {
      fault: "text",
      /** Empty: the fault has ended. */
      json: "text",
    },
  },
} as const;

/**
 * Stores a message together with the faults that it reports, so that no fault is lost or reported twice. False, without a change, if
 * the process does not lead.
 */
export const composeNotificationScript: Script<typeof signature, boolean> = defineScript(
  signature,
  {
    lua: readLua(new URL("compose-notification.lua", import.meta.url)),
    answer: replyFlag,
  },
);
