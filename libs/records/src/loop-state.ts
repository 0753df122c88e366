import { z } from "zod";

/** The cause of attempts that were deferred because their key is in a reconcile loop. */
export const LOOP_CAUSE = "loop";

/** The state of a key in a reconcile loop. Shared by the workers of a cluster. Times are Unix ms. */
export const loopStateSchema = z.object({
  kind: z.enum(["selfTriggered", "requeue", "ownershipFlip"]),
  /** Consecutive attempts or ownership flips, at detection and since then. */
  count: z.number(),
  /** Delayed starts since detection. */
  step: z.number(),
  sinceMs: z.number(),
  /** No start before this time, except for a user request or an external change. */
  untilMs: z.number(),
  /** The written or contended fields. */
  paths: z.array(z.string()),
  managers: z.array(z.string()),
  worker: z.string(),
  /** `report`: starts are not delayed. */
  protection: z.enum(["throttle", "report"]).default("throttle"),
});

export type LoopState = z.output<typeof loopStateSchema>;
