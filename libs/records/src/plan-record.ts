import { z } from "zod";
import { ATTEMPT_OUTCOMES, attemptLogSchema } from "./attempt-record.ts";

/** The change of an object in a plan. `replaced`: deleted and created again. */
export const PLAN_ACTIONS = ["created", "changed", "deleted", "replaced", "unchanged"] as const;

const write = z.object({
  verb: z.enum(["create", "update", "patch", "apply", "delete"]),
  subresource: z.string().optional(),
  fieldManager: z.string().optional(),
  propagationPolicy: z.string().optional(),
  /** False if the API server had nothing to store. */
  changed: z.boolean(),
});

const change = z.object({
  /** The name of the cluster, for an object in another cluster. */
  cluster: z.string().optional(),
  /** `plural.group`. */
  resource: z.string(),
  kind: z.string(),
  namespace: z.string().optional(),
  name: z.string(),
  action: z.enum(PLAN_ACTIONS),
  /** True if the object waits for its finalizers or a grace period after the deletion. */
  terminating: z.boolean().optional(),
  /** The first writes, in order. */
  writes: z.array(write),
  moreWrites: z.number().optional(),
  /** The merge patch from the current object to the planned one, without values of sensitive kinds; large values are truncated. */
  patch: z.record(z.string(), z.unknown()).optional(),
  /**
   * Equal for equal changes of an object: covers truncated values, and only the field names of sensitive kinds. Missing for workers
   * of older versions.
   */
  digest: z.string().optional(),
  /** Fields that belong to another manager now. `at`: the last time that this manager wrote the object. */
  fieldsTakenOver: z
    .array(z.object({ manager: z.string(), path: z.string(), at: z.string().optional() }))
    .optional(),
});

const count = z.number().int();

/** The record of a plan: an attempt whose writes were dry runs. Times are ISO 8601, durations ms. */
export const planRecordSchema = z.object({
  kind: z.literal("plan"),
  id: z.string(),
  key: z.string(),
  controller: z.string(),
  uid: z.string().optional(),
  generation: z.number().optional(),
  /** The version of the object that the plan is about. */
  versionBefore: z.string().optional(),
  worker: z.string(),
  /** The name of the caller. */
  by: z.string().optional(),
  startedAt: z.string(),
  finishedAt: z.string(),
  durationMs: z.number(),
  /** The outcome that the attempt would have. */
  outcome: z.enum(ATTEMPT_OUTCOMES),
  /** The delay of a requeue or deferral. */
  afterMs: z.number().optional(),
  cause: z.string().optional(),
  error: z
    .object({ code: z.string(), reason: z.string().optional(), message: z.string() })
    .optional(),
  /** False if the handler did not reach its end, so that more may follow. */
  complete: z.boolean(),
  /**
   * Identifies exactly this plan: the SHA-256 of its changes and of the versions that it has read. For sensitive kinds, it covers only
   * the field names.
   */
  hash: z.string(),
  summary: z.object({
    created: count,
    changed: count,
    deleted: count,
    replaced: count,
    unchanged: count,
  }),
  changes: z.array(change),
  /** Number of changes that are not listed. */
  moreChanges: count.optional(),
  events: z.array(
    z.object({
      type: z.string(),
      reason: z.string(),
      message: z.string(),
      kind: z.string(),
      namespace: z.string().optional(),
      name: z.string(),
    }),
  ),
  /** Calls of `ctx.external` that were skipped. */
  externals: z.array(z.string()),
  /** Workflow runs that it would start or find. */
  runs: z.array(z.object({ workflow: z.string(), id: z.string().optional() })),
  /** Facts that the plan depends on and cannot determine. */
  gaps: z.array(z.object({ about: z.string(), reason: z.string() })),
  /** Number of events, calls, runs, reads and gaps that are not listed. */
  moreNotes: count.optional(),
  /** Number of objects and lists that it has read. */
  reads: count,
  calls: z.object({ count, durationMs: z.number(), rateLimitMs: z.number() }),
  log: attemptLogSchema.optional(),
});

export type PlanRecord = z.infer<typeof planRecordSchema>;
