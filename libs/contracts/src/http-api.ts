import { GUARD_RATES } from "@konverge/core";
import { z } from "zod";
import { attemptRecordSchema } from "@konverge/records";
import { duration } from "./duration.ts";
import { keyFields, pauseSchema } from "./queue-api.ts";

const sayName = "write a name of 1 to 253 characters";
const name = z.string(sayName).min(1, sayName).max(253, sayName);
/** What can stand in a path of the Kubernetes API; a worker could do nothing about any other name but fail. */
const objectName = name.regex(
  /^(?!\.{1,2}$)[^/%]*$/,
  'no object has this name: leave out "/" and "%", and "." or ".." alone',
);
const sayReason = "say why, in at most 500 characters";

/** Body of `POST /v1/reconciles`. */
export const createReconcileSchema = z.strictObject({
  controller: name,
  cluster: name.default("default"),
  /** Left out for cluster-scoped objects. */
  namespace: objectName.optional(),
  name: objectName,
  /** For people: why. Shown in the object's history. */
  reason: z.string(sayReason).max(500, sayReason).optional(),
});

/** Body of `POST /v1/objects/{cluster}/{controller}/{namespace}/{name}/reconcile`. */
export const reconcileNowSchema = createReconcileSchema.pick({ reason: true });

const sayItems = "send 1 to 1000 items";

/** Body of `POST /v1/reconciles/batch`. */
export const createReconcilesSchema = z.strictObject({
  items: z.array(createReconcileSchema, sayItems).min(1, sayItems).max(1_000, sayItems),
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
  /** The pause that it waits for. */
  paused: pauseSchema.optional(),
});

const sayWait = "write a duration up to 60s, such as 20s";
/** Query of `GET /v1/reconciles/{id}`: for how long to wait for its end. */
export const waitQuerySchema = z.strictObject({
  wait: duration.refine((ms) => ms <= 60_000, sayWait).optional(),
});

/** Answer of `POST /v1/reconciles`. */
export const acceptedReconcileSchema = z.object({
  id: z.string(),
  key: z.string(),
  /** True when it joined a request that was already waiting. */
  coalesced: z.boolean(),
  /** With `Prefer: wait=20`, once it has finished; the status is 200 then. */
  state: reconcileStateSchema.optional(),
});

/** Answer of `GET /v1/objects/{cluster}/{controller}/{namespace}/{name}/attempts`, newest first. */
export const objectAttemptsSchema = z.object({ items: z.array(attemptRecordSchema) });

/** Answer of `GET /v1/objects/{cluster}/{controller}/{namespace}/{name}`. */
export const objectHistorySchema = z.object({
  ...keyFields,
  /** Newest first. */
  attempts: z.array(attemptRecordSchema),
});

const breakerMode = z.enum(["closed", "open", "halfOpen", "isolated"]);
const sayWho = "say who, in at most 200 characters";
const sayWhy = "say why, in at most 200 characters";
const actionNote = { by: z.string(), reason: z.string(), at: z.string() };

/** Body of `POST /v1/guards/{cluster}/isolate` and `/reset`: every order is kept with who gave it and why. */
export const guardActionSchema = z.strictObject({
  by: z.string(sayWho).trim().min(1, sayWho).max(200, sayWho),
  reason: z.string(sayWhy).trim().min(1, sayWhy).max(200, sayWhy),
});

const ratePerSecond = `write calls per second from ${GUARD_RATES.lowest} to ${GUARD_RATES.highest}, or null for the configured rate`;

/** Body of `PUT /v1/guards/{cluster}/rate`. */
export const guardRateSchema = z.strictObject({
  ...guardActionSchema.shape,
  ratePerSecond: z
    .number(ratePerSecond)
    .min(GUARD_RATES.lowest, ratePerSecond)
    .max(GUARD_RATES.highest, ratePerSecond)
    .nullable(),
});

/** A change of a guard's breaker, with the evidence that caused it. */
export const guardTransitionSchema = z.object({
  atMs: z.number(),
  from: breakerMode,
  to: breakerMode,
  /** consecutive, failedShare, slow or strained (calls), probe, timer, or order (a person). */
  reason: z.string(),
  generation: z.number(),
  worker: z.string().optional(),
  openMs: z.number().optional(),
  calls: z.number().optional(),
  failed: z.number().optional(),
  slow: z.number().optional(),
  throttled: z.number().optional(),
  consecutive: z.number().optional(),
  failingWorkers: z.number().optional(),
  liveWorkers: z.number().optional(),
  by: z.string().optional(),
  operatorReason: z.string().optional(),
});

/** Answer of `GET /v1/guards/{cluster}`, and of every order: how the guard stands then. */
export const guardViewSchema = z.object({
  cluster: z.string(),
  breaker: z.object({
    state: breakerMode,
    generation: z.number(),
    openUntil: z.string().optional(),
    consecutiveOpenings: z.number(),
    consecutiveFailures: z.number(),
    /** Decaying counts of the last seconds. */
    recent: z.object({
      calls: z.number(),
      failed: z.number(),
      slow: z.number(),
      throttled: z.number(),
    }),
    isolated: z.object(actionNote).optional(),
  }),
  rate: z.object({
    /** Calls per second that the whole fleet may send now. */
    current: z.number(),
    limits: z.object({
      ratePerSecond: z.number(),
      burst: z.number(),
      minRatePerSecond: z.number(),
      tokenTtlMs: z.number(),
      maxWaitMs: z.number(),
    }),
    /** The worker whose configuration holds. */
    setBy: z.string(),
    pausedUntil: z.string().optional(),
    /** Of a person, in place of the configured rate. */
    override: z.object({ ratePerSecond: z.number(), ...actionNote }).optional(),
  }),
  /** That reported outcomes, and failures, within the last 10 s. */
  workers: z.object({
    live: z.array(z.string()).readonly(),
    failing: z.array(z.string()).readonly(),
  }),
  /** Newest first, at most 50. */
  transitions: z.array(guardTransitionSchema).readonly(),
});

/** Answer of `GET /v1/guards`: by name of the cluster. */
export const guardListSchema = z.object({ items: z.array(guardViewSchema) });

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

/** Answer of `POST /v1/reconciles/batch`: a result per item, in order. */
export const reconcileResultsSchema = z.object({
  accepted: z.number(),
  items: z.array(
    z.union([
      acceptedReconcileSchema,
      z.object({
        error: problemSchema.pick({
          code: true,
          title: true,
          status: true,
          detail: true,
          retryAfterMs: true,
          errors: true,
        }),
      }),
    ]),
  ),
});

export type CreateReconcile = z.output<typeof createReconcileSchema>;
export type AcceptedReconcile = z.infer<typeof acceptedReconcileSchema>;
export type ObjectAttempts = z.infer<typeof objectAttemptsSchema>;
export type ReconcileResults = z.infer<typeof reconcileResultsSchema>;
export type ReconcileState = z.infer<typeof reconcileStateSchema>;
export type ObjectHistory = z.infer<typeof objectHistorySchema>;
export type GuardAction = z.output<typeof guardActionSchema>;
export type GuardView = z.infer<typeof guardViewSchema>;
export type GuardList = z.infer<typeof guardListSchema>;
export type Problem = z.infer<typeof problemSchema>;
