import { CONVERGENCE_CAUSES } from "@konverge/core";
import { z } from "zod";
import { text, wholeNumber } from "./query-fields.ts";

/** Query of `GET /v1/activity`. */
export const activityQuerySchema = z.strictObject({
  /** Default: the cluster of the API process. */
  cluster: text.optional(),
  /** Default: all controllers together. */
  controller: text.optional(),
  minutes: wholeNumber(1_440).default(60),
});

/** One minute. A value that was not measured is missing. */
export const activityMinuteSchema = z.object({
  at: z.string(),
  /** Attempts of the minute that ended well, failed, and ended with a conflict. */
  ok: z.number(),
  failed: z.number(),
  conflict: z.number(),
  /** Percentiles of the durations, within a tenth; only for one controller. */
  p50Ms: z.number().optional(),
  p95Ms: z.number().optional(),
  p99Ms: z.number().optional(),
  /** Most waiting requests, and the highest age of the first of a queue. */
  waiting: z.number().optional(),
  oldestMs: z.number().optional(),
  /** True if the controller was paused; only for one controller. */
  isPaused: z.boolean().optional(),
  /** The digests that workers run since this minute, if they changed; only for one controller. */
  version: z.string().optional(),
  /** Calls of all workers to the API server that the guard admitted and deferred. */
  calls: z.number().optional(),
  deferred: z.number().optional(),
  /** Calls that the guard would have admitted, and as configured. */
  allowed: z.number().optional(),
  limit: z.number().optional(),
  /** Most calls that waited for a token. */
  waitingCalls: z.number().optional(),
  /** The most severe state of the circuit breaker. */
  breaker: z.enum(["closed", "open", "halfOpen", "isolated"]).optional(),
});

/** The causes of a time, most time first. */
const causesSchema = z.array(
  z.object({
    cause: z.enum(CONVERGENCE_CAUSES),
    ms: z.number(),
    /** Part of the time, from 0 to 1. */
    share: z.number(),
  }),
);

/** Response of `GET /v1/activity`. */
export const activitySchema = z.object({
  /** All minutes, oldest first. The last one is incomplete. */
  items: z.array(activityMinuteSchema),
  /** Dead-lettered keys of the controller, counted up to 100; missing without a controller. */
  deadLetters: z.number().optional(),
  /** Whether the controller is paused now; missing without a controller. */
  isPaused: z.boolean().optional(),
  /** Number of newest attempts of the controller whose errors and objects are counted; 0 without a controller. */
  sampled: z.number(),
  /** Failed attempts by error code, most frequent first. */
  errors: z.array(z.object({ code: z.string(), attempts: z.number() })),
  /** Objects with failed attempts, conflicts or wasted writes, most first. */
  objects: z.array(
    z.object({
      key: z.string(),
      failed: z.number(),
      conflicts: z.number(),
      /** Writes without a lasting effect, in the last hour. */
      wastedWrites: z.number(),
    }),
  ),
  /** Competing field managers, in the last hours that `minutes` covers. */
  managers: z.array(
    z.object({
      manager: z.string(),
      /** Attempts of the controller that conflicted with it. */
      attempts: z.number(),
      /** Ownership flips with it, on objects of the controller's kind. */
      flips: z.number(),
    }),
  ),
  /** The times from requests to the ends of successful attempts; only for one controller. Missing if none was measured. */
  convergence: z
    .object({
      totalMs: z.number(),
      causes: causesSchema,
      /** Names the cause with the largest share. */
      summary: z.string(),
    })
    .optional(),
  /** The service level objective of the controller; missing without one. */
  slo: z
    .object({
      /** Longest time from a change to success. */
      thresholdMs: z.number(),
      /** Share of the changes that must be within the threshold. */
      objective: z.number(),
      /** Changes within the threshold, and the others. */
      good: z.number(),
      bad: z.number(),
      /** Part of the error budget of these minutes that is used; above 1 if the objective is missed. */
      budgetUsed: z.number(),
      /** The causes of the time of changes beyond the threshold. */
      causes: causesSchema,
      /** Names the cause that uses most of the budget. */
      summary: z.string(),
    })
    .optional(),
  /** The number of items that each list omits; a list has at most 8. */
  more: z.object({ errors: z.number(), objects: z.number(), managers: z.number() }),
});

export type Activity = z.infer<typeof activitySchema>;
export type ActivityMinute = z.infer<typeof activityMinuteSchema>;
