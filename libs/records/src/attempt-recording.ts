import { OUTCOME_KINDS, TRIGGER_KINDS } from "@konverge/core";
import { z } from "zod";

const error = z.object({
  code: z.string(),
  message: z.string(),
  retryAfterMs: z.number().optional(),
  /** True if the server closed the connection, so that a write may have taken effect. */
  broken: z.literal(true).optional(),
});

/** The reason why a value is missing. */
const omitted = z.enum(["tooLarge", "notJson", "aborted"]).optional();

/** When a read or write was sent and answered, as numbers that increase during the attempt. */
const order = { sentAt: z.number(), answeredAt: z.number() };

/** A call to an API server, with its answer. */
const call = z.object({
  ...order,
  method: z.enum(["GET", "POST", "PUT", "PATCH", "DELETE"]),
  /** With the query. */
  path: z.string(),
  contentType: z.string().optional(),
  accept: z.string().optional(),
  body: z.string().optional(),
  /** The response; missing if there was none. */
  answer: z
    .object({ status: z.number(), headers: z.record(z.string(), z.string()), body: z.string() })
    .optional(),
  /** The error of a call without a response. */
  error: error.optional(),
  /** True if the values of its objects are redacted. */
  redacted: z.literal(true).optional(),
  omitted,
});

/** A read from the cache of the worker: the JSON of a list or an object; null if the cache had no answer. */
const cached = z.object({
  ...order,
  query: z.string(),
  found: z.string().nullable(),
  redacted: z.literal(true).optional(),
  omitted,
});

/** The result of a call outside of the API server. */
const outside = z.object({
  answeredAt: z.number(),
  name: z.string(),
  /** JSON; missing for undefined. */
  value: z.string().optional(),
  error: error.extend({ name: z.string() }).optional(),
  omitted,
});

const event = z.object({
  type: z.string(),
  reason: z.string(),
  message: z.string(),
  /** `plural.group namespace/name`. */
  about: z.string(),
});

const trigger = z.looseObject({ kind: z.enum(TRIGGER_KINDS) });

/**
 * Everything that a handler has read and written in one attempt, so that the attempt can be replayed. Values of sensitive kinds are
 * redacted. Times are Unix ms.
 */
export const attemptRecordingSchema = z.object({
  kind: z.literal("attempt-recording"),
  format: z.literal(1),
  key: z.string(),
  controller: z.string(),
  epoch: z.number(),
  attempt: z.number(),
  failures: z.number(),
  conflicts: z.number(),
  triggers: z.array(trigger),
  floor: z.string().optional(),
  class: z.enum(["interactive", "event", "retry", "background"]),
  requestedAtMs: z.number(),
  startedAtMs: z.number(),
  /** The clock of the worker when the attempt began and ended. */
  beganAtMs: z.number(),
  endedAtMs: z.number(),
  /** True if later reads and writes are missing, because the recording would be too large. */
  isCut: z.literal(true).optional(),
  outcome: z.object({
    kind: z.enum(OUTCOME_KINDS),
    afterMs: z.number().optional(),
    cause: z.string().optional(),
    error: z.object({ code: z.string(), message: z.string() }).optional(),
  }),
  /** Calls by cluster, in the order in which they were sent. */
  calls: z.record(z.string(), z.array(call)),
  lists: z.array(cached),
  finds: z.array(cached),
  /** Objects that other writers passed in object lanes. */
  passed: z.array(z.object({ lane: z.string(), object: z.string().nullable(), omitted })),
  /** True for each read object that was young enough to be written without a second read. */
  fresh: z.array(z.object({ object: z.string(), isFresh: z.boolean() })),
  scopes: z.array(z.object({ namespace: z.string(), isIn: z.boolean() })),
  externals: z.array(outside),
  runs: z.array(
    z.object({
      answeredAt: z.number(),
      workflow: z.string(),
      id: z.string().optional(),
      run: z.object({ id: z.string(), created: z.boolean(), status: z.string() }).optional(),
      error: error.optional(),
    }),
  ),
  events: z.array(event),
  /** What is missing, and why. */
  gaps: z.array(z.object({ about: z.string(), reason: z.string() })),
});

export type AttemptRecording = z.infer<typeof attemptRecordingSchema>;
