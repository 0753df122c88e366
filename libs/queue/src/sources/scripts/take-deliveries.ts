import { clockPart, defineScript, readLua, replyTexts, type Script } from "@konverge/redis";

const signature = {
  name: "take-deliveries",
  keys: ["due", "received"],
  args: { most: "number" },
} as const;

export interface TakenDeliveries {
  /** Time until the next delivery is due, in ms; negative if one is. Undefined if none waits. */
  readonly nextMs: number | undefined;
  /** Age of the oldest one, in ms. */
  readonly oldestMs: number;
  readonly waiting: number;
  /** The numbers of due ones. */
  readonly due: readonly string[];
}

/** Returns the numbers of due deliveries, without their bodies. They stay stored until they are settled. */
export const takeDeliveriesScript: Script<typeof signature, TakenDeliveries> = defineScript(
  signature,
  {
    lua: readLua(new URL("take-deliveries.lua", import.meta.url)),
    include: [clockPart],
    answer(reply) {
      const [next = "", oldest = "0", waiting = "0", ...due] = replyTexts(reply);
      return {
        nextMs: next === "" ? undefined : Number(next),
        oldestMs: Number(oldest),
        waiting: Number(waiting),
        due,
      };
    },
  },
);
