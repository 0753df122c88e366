import { defineScript, readLua, replyTexts, type Script } from "@konverge/redis";
import { sourceClockPart } from "./source-clock.ts";

const signature = {
  name: "take-deliveries",
  keys: ["due", "received"],
  args: { root: "text", most: "number" },
} as const;

export interface StoredDelivery {
  readonly number: string;
  /** JSON. */
  readonly text: string;
  readonly receivedAtMs: number;
  /** Failed tries. */
  readonly tries: number;
}

export interface TakenDeliveries {
  /** Time until the next delivery is due, in ms; negative if one is. Undefined if none waits. */
  readonly nextMs: number | undefined;
  /** Age of the oldest one, in ms. */
  readonly oldestMs: number;
  readonly waiting: number;
  readonly deliveries: readonly StoredDelivery[];
}

/** Returns due deliveries. They stay stored until they are settled. */
export const takeDeliveriesScript: Script<typeof signature, TakenDeliveries> = defineScript(
  signature,
  {
    lua: readLua(new URL("take-deliveries.lua", import.meta.url)),
    include: [sourceClockPart],
    answer(reply) {
      const [next = "", oldest = "0", waiting = "0", ...rows] = replyTexts(reply);
      const deliveries: StoredDelivery[] = [];
      for (let at = 0; at < rows.length; at += 4) {
        const [number = "", text = "", receivedAt = "", tries = ""] = rows.slice(at, at + 4);
        deliveries.push({ number, text, receivedAtMs: Number(receivedAt), tries: Number(tries) });
      }
      return {
        nextMs: next === "" ? undefined : Number(next),
        oldestMs: Number(oldest),
        waiting: Number(waiting),
        deliveries,
      };
    },
  },
);
