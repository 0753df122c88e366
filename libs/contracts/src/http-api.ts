import { z } from "zod";
import { attemptRecordSchema } from "./attempt-record.ts";

const name = z.string().min(1, "must not be empty").max(253);

/** Body of `POST /v1/reconciles`. */
export const createReconcileSchema = z.strictObject({
  controller: name,
  cluster: name.default("default"),
  /** Left out for cluster-scoped objects. */
  namespace: name.optional(),
  name,
  /** For people: why. Shown in the object's history. */
  reason: z.string().max(500).optional(),
});

/** Answer of `POST /v1/reconciles`. */
export const acceptedReconcileSchema = z.object({
  id: z.string(),
  key: z.string(),
  /** True when it joined a request that was already waiting. */
  coalesced: z.boolean(),
});

/** Answer of `GET /v1/reconciles/{id}`. */
export const reconcileStateSchema = z.object({
  id: z.string(),
  key: z.string(),
  phase: z.enum(["waiting", "running", "finished"]),
  outcome: z.string().optional(),
  attempts: z.number(),
  finishedAt: z.string().optional(),
  error: z.object({ code: z.string(), message: z.string() }).optional(),
});

/** Answer of `GET /v1/objects/{cluster}/{controller}/{namespace}/{name}`. */
export const objectHistorySchema = z.object({
  key: z.string(),
  phase: z.enum(["idle", "waiting", "running", "backoff", "dead"]),
  failures: z.number(),
  conflicts: z.number(),
  lastOutcome: z.string().optional(),
  nextAt: z.string().optional(),
  /** Newest first. */
  attempts: z.array(attemptRecordSchema),
});

/** RFC 9457, with a stable `code` and a JSON pointer for each thing that is wrong. */
export const problemSchema = z.object({
  type: z.string(),
  title: z.string(),
  status: z.number(),
  detail: z.string(),
  instance: z.string(),
  code: z.string(),
  retryAfterMs: z.number().optional(),
  errors: z.array(z.object({ pointer: z.string(), detail: z.string() })).optional(),
});

export type CreateReconcile = z.output<typeof createReconcileSchema>;
export type AcceptedReconcile = z.infer<typeof acceptedReconcileSchema>;
export type ReconcileState = z.infer<typeof reconcileStateSchema>;
export type ObjectHistory = z.infer<typeof objectHistorySchema>;
export type Problem = z.infer<typeof problemSchema>;
