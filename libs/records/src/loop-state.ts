import { z } from "zod";

/** A key that runs in circles and is therefore slowed down. Shared by the workers of a cluster. Times are Unix ms. */
export const loopStateSchema = z.object({
  kind: z.enum(["selfTriggered", "requeue", "ownershipFlip"]),
  /** Attempts in a row, or flips, when it was found. */
  count: z.number(),
  /** Starts that were put off since. */
  step: z.number(),
  sinceMs: z.number(),
  /** No start before this, unless a person asks or something else changes. */
  untilMs: z.number(),
  /** What is written, or fought over. */
  paths: z.array(z.string()),
  managers: z.array(z.string()),
  worker: z.string(),
});

export type LoopState = z.infer<typeof loopStateSchema>;
