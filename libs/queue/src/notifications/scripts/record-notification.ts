import { defineScript, readLua, replyFlag, type Script } from "@konverge/redis";

const signature = {
  name: "record-notification",
  keys: ["leader", "waiting", "messages"],
  args: { process: "text", subscription: "text", id: "text", content: "text", ended: "flag" },
} as const;

/** Records a try to deliver a message. False, without a change, if the process does not lead or another one has ended the message. */
export const recordNotificationScript: Script<typeof signature, boolean> = defineScript(signature, {
  lua: readLua(new URL("record-notification.lua", import.meta.url)),
  answer: replyFlag,
});
