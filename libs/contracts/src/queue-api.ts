import { z } from "zod";

export const KEY_PHASES = ["idle", "waiting", "running", "backoff", "dead", "paused"] as const;

/** Who holds back what, why and since when. */
export const pauseSchema = z.object({
  scope: z.discriminatedUnion("kind", [
    z.object({ kind: z.literal("controller") }),
    z.object({ kind: z.literal("namespace"), namespace: z.string() }),
    z.object({ kind: z.literal("key"), key: z.string() }),
  ]),
  by: z.string(),
  reason: z.string(),
  since: z.string(),
});

/** How a key stands. */
export const keyFields = {
  key: z.string(),
  phase: z.enum(KEY_PHASES),
  failures: z.number(),
  conflicts: z.number(),
  lastOutcome: z.string().optional(),
  nextAt: z.string().optional(),
  paused: pauseSchema.optional(),
  dead: z
    .object({
      since: z.string(),
      error: z.object({ code: z.string(), message: z.string() }).optional(),
    })
    .optional(),
};

export type KeyItem = z.infer<z.ZodObject<typeof keyFields>>;
export type PauseView = z.infer<typeof pauseSchema>;
