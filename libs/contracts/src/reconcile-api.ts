import { z } from "zod";
import { duration } from "./duration.ts";
import { rejectedItemSchema } from "./problem.ts";
import { oneOf, text } from "./query-fields.ts";
import { pauseSchema } from "./queue-api.ts";

/** A segment of a path of the Kubernetes API; workers could not use any other name. */
export const objectName: z.ZodString = text.regex(
  /^(?!\.{1,2}$)[^/%]*$/,
  'is not an object name: must not contain "/" or "%", or be "." or ".."',
);
/** The classes that callers may request, the most urgent first. */
export const REQUEST_CLASSES = ["interactive", "event", "background"] as const;
export type RequestedClass = (typeof REQUEST_CLASSES)[number];
export const requestedClassSchema = z.enum(REQUEST_CLASSES, oneOf(REQUEST_CLASSES));

const BAD_REASON = "must have at most 500 characters";

/** Body of `POST /v1/reconciles`. */
export const createReconcileSchema = z.strictObject({
  controller: text,
  cluster: text.default("default"),
  /** Omitted for cluster-scoped objects. */
  namespace: objectName.optional(),
  name: objectName,
  /** Shown in the history of the object. */
  reason: z.string(BAD_REASON).max(500, BAD_REASON).optional(),
  /**
   * The urgency of the request. Default: `interactive`; in a batch, `event`; if the token does not allow it, the most urgent
   * class that the token allows.
   */
  class: requestedClassSchema.optional(),
});

/** Body of `POST /v1/objects/{cluster}/{controller}/{namespace}/{name}/reconcile`. */
export const reconcileNowSchema = createReconcileSchema.pick({ reason: true, class: true });

const BAD_ITEMS = "must have 1 to 1000 items";

/** Body of `POST /v1/reconciles/batch`. */
export const createReconcilesSchema = z.strictObject({
  items: z.array(createReconcileSchema, BAD_ITEMS).min(1, BAD_ITEMS).max(1_000, BAD_ITEMS),
});

/** Response of `GET /v1/reconciles/{id}`. */
export const reconcileStateSchema = z.object({
  id: z.string(),
  key: z.string(),
  phase: z.enum(["waiting", "running", "finished"]),
  outcome: z.string().optional(),
  attempts: z.number(),
  finishedAt: z.string().optional(),
  error: z.object({ code: z.string(), message: z.string() }).optional(),
  /** The pause that delays the request. */
  paused: pauseSchema.optional(),
});

const BAD_WAIT = "must be a duration of at most 60s, such as 20s";

/** Query of `GET /v1/reconciles/{id}`. */
export const waitQuerySchema = z.strictObject({
  wait: duration.refine((ms) => ms <= 60_000, BAD_WAIT).optional(),
});

/** Response of `POST /v1/reconciles`. */
export const acceptedReconcileSchema = z.object({
  id: z.string(),
  key: z.string(),
  /** True if the request joined a waiting one. */
  coalesced: z.boolean(),
  /** Set if the request finished within `Prefer: wait=20`; the status is then 200. */
  state: reconcileStateSchema.optional(),
});

/** Response of `POST /v1/reconciles/batch`: one result per item, in order. */
export const reconcileResultsSchema = z.object({
  accepted: z.number(),
  items: z.array(z.union([acceptedReconcileSchema, rejectedItemSchema])),
});

export type CreateReconcile = z.output<typeof createReconcileSchema>;
export type AcceptedReconcile = z.infer<typeof acceptedReconcileSchema>;
export type ReconcileResults = z.infer<typeof reconcileResultsSchema>;
export type ReconcileState = z.infer<typeof reconcileStateSchema>;
