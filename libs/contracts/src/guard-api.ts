import { GUARD_RATES } from "@konverge/core";
import { z } from "zod";
import { activityMinuteSchema } from "./activity-api.ts";
import { wholeNumber } from "./query-fields.ts";
import { operatorActionSchema } from "./queue-api.ts";

const breakerMode = z.enum(["closed", "open", "halfOpen", "isolated"]);
const actionNote = { by: z.string(), reason: z.string(), at: z.string() };

/** Body of `POST /v1/guards/{cluster}/isolate` and `/reset`. */
export const guardActionSchema = z.strictObject(operatorActionSchema.shape);

const badRate = `must be calls per second from ${GUARD_RATES.lowest} to ${GUARD_RATES.highest}, or null for the configured rate`;

/** Body of `PUT /v1/guards/{cluster}/rate`. */
export const guardRateSchema = z.strictObject({
  ...guardActionSchema.shape,
  ratePerSecond: z
    .number(badRate)
    .min(GUARD_RATES.lowest, badRate)
    .max(GUARD_RATES.highest, badRate)
    .nullable(),
});

/** A state change of a breaker and its cause. */
export const guardTransitionSchema = z.object({
  atMs: z.number(),
  from: breakerMode,
  to: breakerMode,
  /** consecutive, failedShare, slow or strained (calls), probe, timer, or action (operator action). */
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

/** Query of `GET /v1/guards`. */
export const guardListQuerySchema = z.strictObject({
  /** Minutes of `activity` to return. Default 0: none. */
  minutes: wholeNumber(1_440).optional(),
});

/** Response of `GET /v1/guards/{cluster}` and of each action on a guard. */
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
    /** Thresholds and open times, as configured by the worker `rate.setBy`. */
    limits: z.object({
      failures: z.number(),
      calls: z.number(),
      failedShare: z.number(),
      openMs: z.number(),
      maxOpenMs: z.number(),
    }),
    /** The current outage, from the first failed call until calls have succeeded for 30 s. */
    outage: z
      .object({
        since: z.string(),
        /** The last error, for example `timeout` or `HTTP 503`. */
        lastError: z.string().optional(),
        /** Set if calls succeed again: the time of the last failure. */
        recoveringSince: z.string().optional(),
        /** Workers whose calls failed, of those that called, when the breaker opened or now. */
        failingWorkers: z.number(),
        liveWorkers: z.number(),
      })
      .optional(),
    isolated: z.object(actionNote).optional(),
  }),
  rate: z.object({
    /** Calls per second of all workers together. */
    current: z.number(),
    limits: z.object({
      ratePerSecond: z.number(),
      burst: z.number(),
      minRatePerSecond: z.number(),
      tokenTtlMs: z.number(),
      maxWaitMs: z.number(),
    }),
    /** The worker whose configuration applies. */
    setBy: z.string(),
    pausedUntil: z.string().optional(),
    /** The rate set by an operator instead of the configured one. */
    override: z.object({ ratePerSecond: z.number(), ...actionNote }).optional(),
  }),
  /** Workers that requested tokens or reported results in the last 10 s, and those that reported failures. */
  workers: z.object({
    live: z.array(z.string()).readonly(),
    failing: z.array(z.string()).readonly(),
  }),
  /** Newest first, at most 50. */
  transitions: z.array(guardTransitionSchema).readonly(),
});

/** Response of `GET /v1/guards`, by cluster name. */
export const guardListSchema = z.object({
  items: z.array(
    guardViewSchema.extend({
      /** Calls that wait for a token in all workers now, by class. */
      waitingCalls: z.record(z.string(), z.number()),
      /** Calls in flight from all workers. */
      inFlight: z.number(),
      /** Calls, rates and states per minute, oldest first. The last minute is incomplete. */
      activity: z.array(
        activityMinuteSchema.pick({
          at: true,
          calls: true,
          deferred: true,
          allowed: true,
          limit: true,
          waitingCalls: true,
          breaker: true,
        }),
      ),
    }),
  ),
});

export type GuardAction = z.output<typeof guardActionSchema>;
export type GuardView = z.infer<typeof guardViewSchema>;
export type GuardList = z.infer<typeof guardListSchema>;
