import { z } from "zod";
import {
  ATTEMPT_OUTCOMES,
  attemptLogSchema,
  attemptRecordSchema,
  HINT_CODES,
  loopStateSchema,
} from "@konverge/records";
import { oneOf, streamCursor, text, wholeNumber } from "./query-fields.ts";
import { keyFields } from "./queue-api.ts";

const MOST_LISTED = 200;
const BAD_TIME = "must be a time, such as 2026-11-22T08:00:00Z";
const time = z.iso.datetime({ offset: true, error: BAD_TIME });

/** An outcome as a filter. */
export const attemptOutcome: z.ZodEnum<{ [Kind in (typeof ATTEMPT_OUTCOMES)[number]]: Kind }> =
  z.enum(ATTEMPT_OUTCOMES, oneOf(ATTEMPT_OUTCOMES));

/** Query of `GET /v1/attempts`; filters are combined with AND. */
export const attemptQuerySchema = z.strictObject({
  cluster: text.default("default"),
  controller: text.optional(),
  /** A kind of a controller (`NodePool`), a plural name, or `plural.group`. */
  kind: text.optional(),
  /** `_` for cluster-scoped objects. */
  namespace: text.optional(),
  /** Substring of the object name. */
  name: text.optional(),
  outcome: attemptOutcome.optional(),
  /** Error code. */
  error: text.optional(),
  /** Field manager that caused a conflict. */
  manager: text.optional(),
  /** Hint code. */
  hint: z.enum(HINT_CODES, oneOf(HINT_CODES)).optional(),
  /** The attempt ended at this time or later. */
  since: time.optional(),
  /** The attempt ended before this time. */
  until: time.optional(),
  limit: wholeNumber(MOST_LISTED).default(50),
  /** `next` of an earlier response. */
  cursor: streamCursor.optional(),
});

/** An attempt in lists. */
export const attemptSummarySchema = z.object({
  id: z.string(),
  key: z.string(),
  controller: z.string(),
  /** `plural.group`. */
  resource: z.string(),
  namespace: z.string().optional(),
  name: z.string(),
  outcome: z.string(),
  errorCode: z.string().optional(),
  /** The start of the error message; the attempt record has the full text. */
  errorMessage: z.string().optional(),
  managers: z.array(z.string()),
  hints: z.array(z.string()),
  startedAt: z.string(),
  durationMs: z.number(),
  conflicts: z.number(),
  writes: z.number(),
  calls: z.number(),
  worker: z.string(),
});

/** Response of `GET /v1/attempts`, newest first. A short page can still have a `next`. */
export const attemptPageSchema = z.object({
  items: z.array(attemptSummarySchema),
  next: z.string().optional(),
});

/** Response of `GET /v1/objects/{cluster}/{controller}/{namespace}/{name}/attempts`, newest first. */
export const objectAttemptsSchema = z.object({ items: z.array(attemptRecordSchema) });

/** Response of `GET /v1/objects/{cluster}/{controller}/{namespace}/{name}/contention`. */
export const contentionSchema = z.object({
  resource: z.string(),
  namespace: z.string().optional(),
  name: z.string(),
  /** Most recent first. */
  competingWriters: z.array(
    z.object({
      /** `lost`: a write of the manager caused a conflict. `taken`: the controller took the field over. */
      kind: z.enum(["conflict", "takeover"]),
      manager: z.string(),
      path: z.string(),
      count: z.number(),
      /** The count since the last 10 quiet minutes. */
      inEpisode: z.number(),
      firstAt: z.string(),
      lastAt: z.string(),
    }),
  ),
  /** Set while the key is throttled. */
  loop: loopStateSchema.optional(),
});

/** Response of `GET /v1/objects/{cluster}/{controller}/{namespace}/{name}`. */
export const objectHistorySchema = z.object({
  ...keyFields,
  /** Newest first. */
  attempts: z.array(attemptRecordSchema),
  contention: contentionSchema,
});

/** Query of `GET /v1/objects/{cluster}/{controller}/{namespace}/{name}/logs`. */
export const objectLogQuerySchema = z.strictObject({
  /** Attempt number. Default: all kept attempts. */
  attempt: wholeNumber(Number.MAX_SAFE_INTEGER).optional(),
});

/** Response of `GET /v1/objects/{cluster}/{controller}/{namespace}/{name}/logs`, oldest first. */
export const objectLogSchema = z.object({
  items: z.array(
    z.object({
      /** Number of the attempt. */
      attempt: z.number(),
      ...attemptLogSchema.element.shape,
    }),
  ),
});

/** Query of `GET /v1/contention`. */
export const contentionQuerySchema = z.strictObject({
  cluster: text.default("default"),
  /** Length of the period in hours. */
  hours: wholeNumber(24).default(1),
});

const object = { resource: z.string(), namespace: z.string().optional(), name: z.string() };

const contentionEpisode = z.object({
  ...object,
  controller: z.string(),
  /** The key of the object, of this controller if it reconciles the kind, else of another one. */
  key: z.string().optional(),
  /** Both writers overwrite the same fields, both write at the same time, or the controller triggers itself. */
  kind: z.enum(["ownershipFlip", "conflict", "selfTriggered"]),
  /** The other field managers. */
  managers: z.array(z.string()),
  fields: z.array(z.string()),
  /** Set if the key is in a reconcile loop. */
  isThrottled: z.boolean().optional(),
  since: z.string(),
  lastAt: z.string(),
  /** Writes of the controller without a lasting effect, in the last hour. */
  wastedWrites: z.number(),
  /** Wasted writes per minute, over the last 5 minutes. */
  perMinute: z.number(),
  /** Wasted writes in each of the last 60 minutes, oldest first. The last minute is incomplete. */
  minutes: z.array(z.number()),
  suggestedFix: z.string(),
});

/** Response of `GET /v1/contention`: contended objects, ownership flips and throttled keys. */
export const contentionReportSchema = z.object({
  /** Contention of the last hour, most wasted writes per minute first, at most 20. */
  episodes: z.array(contentionEpisode),
  moreEpisodes: z.number(),
  contendedObjects: z.array(z.object({ ...object, conflicts: z.number() })),
  ownershipFlips: z.array(
    z.object({ ...object, manager: z.string(), path: z.string(), count: z.number() }),
  ),
  loops: z.array(loopStateSchema.extend({ key: z.string() })),
  /** Attempts with conflicts by controller and manager, most first. */
  competingManagers: z.array(
    z.object({ controller: z.string(), manager: z.string(), attempts: z.number() }),
  ),
});

/** Query of `GET /v1/rollups`. */
export const rollupsQuerySchema = z.strictObject({
  cluster: text.default("default"),
  controller: text,
  minutes: wholeNumber(1_440).default(60),
});

/** Response of `GET /v1/rollups`: counts of a controller per minute, newest first. Minutes without attempts are omitted. */
export const rollupsSchema = z.object({
  items: z.array(
    z.object({
      at: z.string(),
      attempts: z.number(),
      /** By outcome. */
      outcomes: z.record(z.string(), z.number()),
      conflicts: z.number(),
      writes: z.number(),
      calls: z.number(),
      /** Total run time. */
      ms: z.number(),
    }),
  ),
});

export type AttemptListQuery = z.output<typeof attemptQuerySchema>;
export type AttemptSummary = z.infer<typeof attemptSummarySchema>;
export type AttemptPage = z.infer<typeof attemptPageSchema>;
export type Contention = z.infer<typeof contentionSchema>;
export type ContentionEpisode = z.infer<typeof contentionEpisode>;
export type ContentionReport = z.infer<typeof contentionReportSchema>;
export type Rollups = z.infer<typeof rollupsSchema>;
export type ObjectAttempts = z.infer<typeof objectAttemptsSchema>;
export type ObjectLog = z.infer<typeof objectLogSchema>;
export type ObjectHistory = z.infer<typeof objectHistorySchema>;
