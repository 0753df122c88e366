import { clockPart, defineScript, readLua, replyFlag, type Script } from "@konverge/redis";

const signature = {
  name: "settle-delivery",
  keys: ["due", "received", "bytes"],
  args: {
    root: "text",
    number: "text",
    /** Time until the next try, in ms; 0 to remove the delivery. */
    againMs: "number",
    /** The error of the try. */
    detail: "text",
  },
} as const;

/** Removes a delivery, or delays it after a failed try. False if it was removed before. */
export const settleDeliveryScript: Script<typeof signature, boolean> = defineScript(signature, {
  lua: readLua(new URL("settle-delivery.lua", import.meta.url)),
  include: [clockPart],
  answer: replyFlag,
});
