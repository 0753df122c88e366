import { z } from "zod";
import { auditEntrySchema } from "./audit-api.ts";
import { attemptOutcome, attemptSummarySchema } from "./history-api.ts";
import { guardTransitionSchema } from "./guard-api.ts";
import { text } from "./query-fields.ts";

/** Query of `GET /v1/events`; filters are combined with AND, so `outcome` selects attempts only. */
export const eventQuerySchema = z.strictObject({
  cluster: text.default("default"),
  controller: text.optional(),
  /** `_` for cluster-scoped objects. */
  namespace: text.optional(),
  /** Substring of the object name. */
  name: text.optional(),
  outcome: attemptOutcome.optional(),
});

/**
 * An event of `GET /v1/events`, as `event:` and `data:`. The `id:` is an opaque cursor for `Last-Event-ID`.
 */
export const streamEventSchema = z.discriminatedUnion("type", [
  /** An attempt has ended. Sent up to a second late; the full record is with the object. */
  z.object({ type: z.literal("attempt"), data: attemptSummarySchema }),
  /** An operator action. */
  z.object({ type: z.literal("change"), data: auditEntrySchema }),
  /** The breaker of the cluster's API server changed. */
  z.object({
    type: z.literal("guard"),
    data: z.object({ cluster: z.string(), transition: guardTransitionSchema }),
  }),
]);

export type EventQuery = z.output<typeof eventQuerySchema>;
export type StreamEvent = z.infer<typeof streamEventSchema>;
