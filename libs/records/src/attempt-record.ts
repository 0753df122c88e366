import { LOG_LEVELS, OUTCOME_KINDS, TRIGGER_KINDS } from "@konverge/core";
import { z } from "zod";
import { HINTS, type HintCode } from "./hint.ts";

/** A field manager whose write conflicted with ours. */
const competingWriter = z.object({
  manager: z.string(),
  operation: z.string(),
  subresource: z.string().optional(),
  paths: z.array(z.string()),
});

/** Of a write or conflict in another cluster: its name. */
const cluster = z.string().optional();

const conflict = z.object({
  readVersion: z.string(),
  foundVersion: z.string().optional(),
  competingWriters: z.array(competingWriter),
  /** Wait before the next try, in ms. */
  waitedMs: z.number(),
});

const write = z.object({
  cluster,
  verb: z.enum(["create", "update", "patch", "apply", "delete"]),
  /** `plural.group`. */
  resource: z.string(),
  name: z.string(),
  namespace: z.string().optional(),
  subresource: z.string().optional(),
  fieldManager: z.string().optional(),
  fromVersion: z.string().optional(),
  toVersion: z.string().optional(),
  /** The applied merge patch, without values of Secrets; large values are truncated. */
  patch: z.record(z.string(), z.unknown()).optional(),
  conflicts: z.array(conflict),
  /** Fields that belonged to another manager before. */
  fieldsTakenOver: z.array(z.object({ manager: z.string(), path: z.string() })).optional(),
});

/** The outcomes of attempts in records. */
export const ATTEMPT_OUTCOMES = [
  ...OUTCOME_KINDS,
  // The worker died or was cut off; what the handler did is unknown.
  "lost",
] as const;

export const HINT_CODES: readonly HintCode[] = Object.keys(HINTS) as HintCode[];

/** A likely problem of the handler; docs/hints.md explains each. */
const hint = z.object({
  code: z.enum(HINT_CODES),
  message: z.string(),
});

const trigger = z.object({
  kind: z.enum(TRIGGER_KINDS),
  by: z.string().optional(),
  reason: z.string().optional(),
  resourceVersion: z.string().optional(),
  generation: z.number().optional(),
  version: z.string().optional(),
  traceparent: z.string().optional(),
});

const logLine = z.object({
  at: z.string(),
  level: z.enum(LOG_LEVELS),
  message: z.string(),
  fields: z.record(z.string(), z.unknown()).optional(),
});

/** Lines that a handler has logged, oldest first. */
export const attemptLogSchema = z.array(logLine);

/** The stored record of one attempt, which explains it later. Times are ISO 8601, durations ms. */
export const attemptRecordSchema = z.object({
  /** `plan`: all writes were dry runs, because the controller observes. Missing for other attempts. */
  kind: z.literal("plan").optional(),
  id: z.string(),
  key: z.string(),
  /** Incremented by every attempt of the key. */
  epoch: z.number().optional(),
  controller: z.string(),
  uid: z.string().optional(),
  attempt: z.number(),
  worker: z.string(),
  triggers: z.array(trigger),
  requestedAt: z.string(),
  startedAt: z.string(),
  finishedAt: z.string(),
  durationMs: z.number(),
  waits: z.object({
    /** Wait in the queue. */
    queueMs: z.number(),
    /** Wait for tokens of the rate limit. */
    rateLimitMs: z.number(),
    /** Wait in object lanes. */
    laneMs: z.number().default(0),
    /** Wait between in-handler tries after a conflict. */
    conflictMs: z.number(),
    /** Delay of the retry that this outcome causes. */
    backoffMs: z.number(),
  }),
  generation: z.number().optional(),
  observedGeneration: z.number().optional(),
  versionBefore: z.string().optional(),
  versionAfter: z.string().optional(),
  outcome: z.enum(ATTEMPT_OUTCOMES),
  afterMs: z.number().optional(),
  /** Reason of a deferral or cancellation. */
  cause: z.string().optional(),
  error: z
    .object({
      code: z.string(),
      /** Reason of the API server. */
      reason: z.string().optional(),
      message: z.string(),
      /** Where it was thrown, as `at function (file:line:column)`; of the error, then of its causes. */
      frames: z.array(z.string()).optional(),
    })
    .optional(),
  writes: z.array(write),
  /** Conflicts of writes that were not applied in this attempt. */
  conflicts: z.array(
    conflict.extend({
      cluster,
      resource: z.string(),
      namespace: z.string().optional(),
      name: z.string(),
      subresource: z.string().optional(),
    }),
  ),
  /** Workflow runs that it started, or found instead of starting them. */
  runs: z.array(z.object({ id: z.string(), created: z.boolean() })).optional(),
  calls: z.object({ count: z.number(), durationMs: z.number() }),
  /** Time that the event loop of the worker was blocked during the attempt, in ms; missing if it was not. */
  eventLoopBlockedMs: z.number().optional(),
  hints: z.array(hint).optional(),
  /** The last lines of the handler's log. */
  log: attemptLogSchema.optional(),
  /** Number of earlier lines that were not kept. */
  logOmitted: z.number().optional(),
  /** W3C trace id, if tracing is enabled. */
  traceId: z.string().optional(),
});

/** The record that the queue stores for a lost attempt. */
export const lostRecordSchema = z.object({
  outcome: z.literal("lost"),
  epoch: z.number(),
  attempt: z.number(),
  /** Unix ms. */
  requestedAtMs: z.number(),
  triggers: z.array(trigger),
  /** What its worker had stored: all lines but those of the last second. */
  log: attemptLogSchema.optional(),
});

export type AttemptRecord = z.infer<typeof attemptRecordSchema>;
export type Hint = z.infer<typeof hint>;
