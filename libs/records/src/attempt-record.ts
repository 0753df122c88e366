import { OUTCOME_KINDS, TRIGGER_KINDS } from "@konverge/core";
import { z } from "zod";
import { HINTS, type HintCode } from "./hint.ts";

/** A field manager that won against our write. */
const competingWriter = z.object({
  manager: z.string(),
  operation: z.string(),
  subresource: z.string().optional(),
  paths: z.array(z.string()),
});

const conflict = z.object({
  readVersion: z.string(),
  foundVersion: z.string().optional(),
  competingWriters: z.array(competingWriter),
  /** Before the next try, in ms. */
  waitedMs: z.number(),
});

const write = z.object({
  verb: z.enum(["create", "update", "patch", "apply", "delete"]),
  /** `plural.group`. */
  resource: z.string(),
  name: z.string(),
  namespace: z.string().optional(),
  subresource: z.string().optional(),
  fieldManager: z.string().optional(),
  fromVersion: z.string().optional(),
  toVersion: z.string().optional(),
  /** The merge patch that landed; values of Secrets are taken out, large ones cut. */
  patch: z.record(z.string(), z.unknown()).optional(),
  conflicts: z.array(conflict),
  /** Fields that another manager owned before. */
  fieldsTakenOver: z.array(z.object({ manager: z.string(), path: z.string() })).optional(),
});

/** How an attempt can end. */
export const ATTEMPT_OUTCOMES = [
  ...OUTCOME_KINDS,
  // The worker died or was cut off; what the handler did is unknown.
  "lost",
] as const;

/** Codes of hints. */
export const HINT_CODES: readonly HintCode[] = Object.keys(HINTS) as HintCode[];

/** Something that the handler probably does wrong; docs/hints.md explains each. */
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

/** What is kept of one attempt: enough to explain it later. Times are ISO 8601, durations ms. */
export const attemptRecordSchema = z.object({
  id: z.string(),
  key: z.string(),
  /** Grows by one with every attempt of the key. */
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
    /** In the queue. */
    queueMs: z.number(),
    /** For tokens of the API server's budget. */
    rateLimitMs: z.number(),
    /** For its turn among our own writers of an object. */
    laneMs: z.number().default(0),
    /** Between in-handler tries after a conflict. */
    conflictMs: z.number(),
    /** Until the job is tried again because of this outcome. */
    backoffMs: z.number(),
  }),
  generation: z.number().optional(),
  observedGeneration: z.number().optional(),
  versionBefore: z.string().optional(),
  versionAfter: z.string().optional(),
  outcome: z.enum(ATTEMPT_OUTCOMES),
  afterMs: z.number().optional(),
  /** Why it was deferred or cancelled. */
  cause: z.string().optional(),
  error: z
    .object({
      code: z.string(),
      /** Of the API server. */
      reason: z.string().optional(),
      message: z.string(),
    })
    .optional(),
  writes: z.array(write),
  /** Conflicts of writes that did not land in this attempt. */
  conflicts: z.array(
    conflict.extend({
      resource: z.string(),
      namespace: z.string().optional(),
      name: z.string(),
      subresource: z.string().optional(),
    }),
  ),
  /** Runs of workflows that it started, or found as it would have started them. */
  runs: z.array(z.object({ id: z.string(), created: z.boolean() })).optional(),
  calls: z.object({ count: z.number(), durationMs: z.number() }),
  /** How long the worker's event loop stood still during the attempt, in ms; absent when it did not. */
  eventLoopBlockedMs: z.number().optional(),
  hints: z.array(hint).optional(),
  /** W3C trace id, where tracing is on. */
  traceId: z.string().optional(),
});

/** What the queue keeps of an attempt that nobody ended. */
export const lostRecordSchema = z.object({
  outcome: z.literal("lost"),
  epoch: z.number(),
  attempt: z.number(),
  /** Unix ms. */
  requestedAtMs: z.number(),
  triggers: z.array(trigger),
});

export type AttemptRecord = z.infer<typeof attemptRecordSchema>;
export type Hint = z.infer<typeof hint>;
