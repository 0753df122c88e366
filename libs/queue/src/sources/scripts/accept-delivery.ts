import { clockPart, defineScript, readLua, replyTexts, type Script } from "@konverge/redis";

/** Maximum number and size in bytes of the waiting deliveries of an inbound source. */
const MAX_WAITING = 10_000;
const MAX_WAITING_BYTES = 67_108_864;

const signature = {
  name: "accept-delivery",
  keys: ["due", "received", "bytes"],
  args: {
    root: "text",
    /** Random: after Redis lost writes, a sequence would give the number of a lost delivery to another one. */
    number: "text",
    channel: "text",
    name: "text",
    /** The delivery (JSON). */
    text: "text",
    /** How long repetitions are recognized. */
    windowMs: "number",
    /** The signed time of the delivery, in epoch ms; 0 if it has none. */
    sentAtMs: "number",
    /** Largest difference between `sentAtMs` and the clock of Redis. */
    toleranceMs: "number",
  },
  each: {
    keys: [
      /** Exists while the same delivery is recognized. */
      "seen",
    ],
  },
} as const;

export interface AcceptedDelivery {
  readonly kind: "accepted" | "duplicate" | "full" | "skewed";
  /** The number of the delivery, or of the repeated one; for `skewed`, the age in ms; otherwise empty. */
  readonly detail: string;
}

/** Stores a verified delivery, unless it is a repetition or too old. */
export const acceptDeliveryScript: Script<typeof signature, AcceptedDelivery> = defineScript(
  signature,
  {
    lua: readLua(new URL("accept-delivery.lua", import.meta.url)),
    include: [clockPart],
    constants: { MAX_WAITING, MAX_WAITING_BYTES },
    answer(reply) {
      const [kind = "", detail = ""] = replyTexts(reply);
      return { kind: kind as AcceptedDelivery["kind"], detail };
    },
  },
);
