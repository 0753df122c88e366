import { z } from "zod";

const use = {
  /** Slots in use. */
  held: z.number(),
  /** Steps and attempts that wait for a permit. */
  waiting: z.number(),
};

/** A named limit that all workers share. */
const limitViewSchema = z.object({
  name: z.string(),
  /** As configured, with defaults: `rate` permits in `perMs`, `burst` at once, `concurrency` held at once. */
  options: z.object({
    rate: z.number().optional(),
    perMs: z.number().optional(),
    burst: z.number().optional(),
    concurrency: z.number().optional(),
  }),
  /** The worker whose configuration applies. */
  setBy: z.string(),
  /** Permits, and requests that had to wait, since the limit exists. */
  permits: z.number(),
  deferrals: z.number(),
  ...use,
  /** The keys with most waiters, at most 20. Empty for tokens with a scope. */
  keys: z.array(z.object({ key: z.string(), ...use })).readonly(),
});

/** Response of `GET /v1/limits`, by name. */
export const limitListSchema = z.object({ items: z.array(limitViewSchema) });

export type LimitView = z.infer<typeof limitViewSchema>;
export type LimitList = z.infer<typeof limitListSchema>;
