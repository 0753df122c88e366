import { z } from "zod";
import { ATTEMPT_OUTCOMES, HINT_CODES, loopStateSchema } from "@konverge/records";

const MOST_LISTED = 200;
const sayText = "write a text of 1 to 253 characters";
const text = z.string(sayText).min(1, sayText).max(253, sayText);
const whole = (what: string, most: number) =>
  z.coerce
    .number(`write ${what} as a whole number`)
    .int(`write ${what} as a whole number`)
    .min(1, `write ${what} from 1 to ${most}`)
    .max(most, `write ${what} from 1 to ${most}`);

/** An outcome to look for. */
export const attemptOutcome: z.ZodEnum<{ [Kind in (typeof ATTEMPT_OUTCOMES)[number]]: Kind }> =
  z.enum(ATTEMPT_OUTCOMES, `write one of ${ATTEMPT_OUTCOMES.join(", ")}`);

/** Query of `GET /v1/attempts`; all that is given must hold. */
export const attemptQuerySchema = z.strictObject({
  cluster: text.default("default"),
  controller: text.optional(),
  /** A kind of a controller (`NodePool`), a plural, or `plural.group`. */
  kind: text.optional(),
  /** `_` for cluster-scoped objects. */
  namespace: text.optional(),
  /** Any part of the object's name. */
  name: text.optional(),
  outcome: attemptOutcome.optional(),
  /** Code of the error. */
  error: text.optional(),
  /** A field manager that won against the attempt. */
  manager: text.optional(),
  /** Code of a hint. */
  hint: z.enum(HINT_CODES, `write one of ${HINT_CODES.join(", ")}`).optional(),
  limit: whole("limit", MOST_LISTED).default(50),
  /** `next` of an earlier answer. */
  cursor: text.optional(),
});

/** An attempt as a line in lists. */
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
  managers: z.array(z.string()),
  hints: z.array(z.string()),
  startedAt: z.string(),
  durationMs: z.number(),
  conflicts: z.number(),
  writes: z.number(),
  calls: z.number(),
  worker: z.string(),
});

/** Answer of `GET /v1/attempts`, newest first. A page may be short and still have a `next`. */
export const attemptPageSchema = z.object({
  items: z.array(attemptSummarySchema),
  next: z.string().optional(),
});

/** Answer of `GET /v1/objects/{cluster}/{controller}/{namespace}/{name}/contention`: who fights over the object. */
export const contentionSchema = z.object({
  resource: z.string(),
  namespace: z.string().optional(),
  name: z.string(),
  /** Latest first. */
  competingWriters: z.array(
    z.object({
      /** `lost`: the manager's write won against one of ours. `taken`: we took the field from it. */
      kind: z.enum(["conflict", "takeover"]),
      manager: z.string(),
      path: z.string(),
      count: z.number(),
      /** Since the last pause of 10 minutes. */
      inEpisode: z.number(),
      firstAt: z.string(),
      lastAt: z.string(),
    }),
  ),
  /** Set while the key is slowed down. */
  loop: loopStateSchema.optional(),
});

/** Query of `GET /v1/contention`. */
export const contentionQuerySchema = z.strictObject({
  cluster: text.default("default"),
  /** How far back, in whole hours. */
  hours: whole("hours", 24).default(1),
});

const object = { resource: z.string(), namespace: z.string().optional(), name: z.string() };

/** Answer of `GET /v1/contention`: the objects most fought over, the fields that go to and fro, the keys that are slowed down. */
export const contentionReportSchema = z.object({
  contendedObjects: z.array(z.object({ ...object, conflicts: z.number() })),
  ownershipFlips: z.array(
    z.object({ ...object, manager: z.string(), path: z.string(), count: z.number() }),
  ),
  loops: z.array(loopStateSchema.extend({ key: z.string() })),
  /** Whose attempts lost to which manager, of the last 1,000 that lost within the hours; most first. */
  competingManagers: z.array(
    z.object({ controller: z.string(), manager: z.string(), attempts: z.number() }),
  ),
});

/** Query of `GET /v1/rollups`. */
export const rollupsQuerySchema = z.strictObject({
  cluster: text.default("default"),
  controller: text,
  minutes: whole("minutes", 1_440).default(60),
});

/** Answer of `GET /v1/rollups`: what a controller did per minute, newest first. Minutes without attempts are left out. */
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
      /** Running, summed. */
      ms: z.number(),
    }),
  ),
});

export type AttemptListQuery = z.output<typeof attemptQuerySchema>;
export type AttemptSummary = z.infer<typeof attemptSummarySchema>;
export type AttemptPage = z.infer<typeof attemptPageSchema>;
export type Contention = z.infer<typeof contentionSchema>;
export type ContentionReport = z.infer<typeof contentionReportSchema>;
export type Rollups = z.infer<typeof rollupsSchema>;
