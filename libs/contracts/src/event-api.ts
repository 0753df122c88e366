import { z } from "zod";
import { auditEntrySchema } from "./audit-api.ts";
import { attemptOutcome, attemptSummarySchema } from "./history-api.ts";
import { guardTransitionSchema } from "./http-api.ts";

const sayText = "write a text of 1 to 253 characters";
const text = z.string(sayText).min(1, sayText).max(253, sayText);

/** Query of `GET /v1/events`; all that is given must hold, so `outcome` leaves attempts only. */
export const eventQuerySchema = z.strictObject({
  cluster: text.default("default"),
  controller: text.optional(),
  /** `_` for cluster-scoped objects. */
  namespace: text.optional(),
  /** Any part of the object's name. */
  name: text.optional(),
  outcome: attemptOutcome.optional(),
});

/**
 * What `GET /v1/events` sends as `event:` and `data:`. The `id:` is where to go on (`Last-Event-ID`); it is not to be
 * looked into.
 */
export const streamEventSchema = z.discriminatedUnion("type", [
  /** An attempt has ended: a hint, up to a second late; the object has the whole record. */
  z.object({ type: z.literal("attempt"), data: attemptSummarySchema }),
  /** A person paused, resumed, cancelled or released something, or gave a guard an order. */
  z.object({ type: z.literal("change"), data: auditEntrySchema }),
  /** The breaker of the cluster's API server changed. */
  z.object({
    type: z.literal("guard"),
    data: z.object({ cluster: z.string(), transition: guardTransitionSchema }),
  }),
]);

export type EventQuery = z.output<typeof eventQuerySchema>;
export type StreamEvent = z.infer<typeof streamEventSchema>;
