import { MAX_RUN_LIMITS } from "@konverge/core";
import { z } from "zod";
import { oneOf } from "./query-fields.ts";
import { operatorActionSchema } from "./queue-api.ts";
import { runSchema } from "./run-api.ts";
import { cluster, id, runCursor, runFilterFields, shortText } from "./run-fields.ts";

const BAD_STEP = "must be the name of a recorded step";
const RUN_ACTIONS = ["cancel", "pause", "resume", "retry", "signal", "terminate"] as const;
const BAD_EXPECT = "must be the number of matching runs, such as 120";

/** Body of `POST /v1/runs/actions`. */
export const actOnRunsSchema = z
  .strictObject({
    cluster,
    action: z.enum(RUN_ACTIONS, oneOf(RUN_ACTIONS)),
    /** Only runs to which the action applies match, even without a filter. `retry` needs a status. */
    filter: z.strictObject(runFilterFields).default({}),
    /** Required without a filter, except with `dryRun`, `expect` or `cursor`. */
    all: z.boolean("must be true or false").default(false),
    /** Only counts the matching runs. */
    dryRun: z.boolean("must be true or false").default(false),
    /** The action is rejected if the number of matching runs differs. */
    expect: z.int(BAD_EXPECT).min(0, BAD_EXPECT).optional(),
    /** `next` of an earlier response: continue there. */
    cursor: runCursor.optional(),
    /** With `retry`: resume the same runs after their completed steps instead of starting new runs. */
    fromFailed: z.boolean("must be true or false").default(false),
    /** Required for `signal`. */
    signal: z
      .strictObject({
        name: shortText,
        payload: z.unknown().optional(),
        /** Each run receives an ID once. Default: derived from the Idempotency-Key. Send the same one with each cursor. */
        id: id.optional(),
      })
      .optional(),
    ...operatorActionSchema.shape,
  })
  .superRefine(({ action, filter, all, signal, expect, cursor: from, dryRun }, context) => {
    const reject = (path: string, message: string) =>
      context.addIssue({ code: "custom", path: [path], message });
    if ((action === "signal") !== (signal !== undefined)) {
      reject("signal", 'is required for the action "signal", and for no other one');
    }
    const isFiltered = Object.values(filter).some((each) => each !== undefined);
    const isMeant = all || dryRun || expect !== undefined || from !== undefined;
    if (isFiltered && all) reject("all", "cannot be combined with a filter; omit one of them");
    if (!isFiltered && !isMeant) reject("all", "must be true to act on all runs; or set a filter");
    if (from === undefined) return;
    if (expect !== undefined) reject("expect", "cannot be combined with cursor");
  });

/** Response of the same. */
export const actOnRunsResponseSchema = z.object({
  dryRun: z.boolean(),
  /** Matching runs; with a cursor, or with `next` in the response, those that this request has counted or visited. */
  matched: z.number(),
  changed: z.number(),
  /** Runs that already had the wanted state, or that ended meanwhile. */
  unchanged: z.number(),
  failed: z.number(),
  /** The first 10. */
  failures: z.array(z.object({ id: z.string(), code: z.string(), message: z.string() })),
  /** Set if runs are left after 10 s; the same request with this `cursor` continues. */
  next: z.string().optional(),
});

/** Response of `POST /v1/runs/{id}/cancel`: the run, and whether the request has an effect. */
export const cancelRunResponseSchema = runSchema.extend({
  /** `delayed`: the run is cancelled once it is no longer blocked. `none`: nothing was changed. */
  effect: z.enum(["requested", "delayed", "none"]),
  /** Why it has no effect yet, with a suggested fix. */
  note: z.string().optional(),
});

/** Response of `POST /v1/runs/{id}/pause` and `/resume`: the run, and whether the request has an effect. */
export const pauseRunResponseSchema = runSchema.extend({
  /** `pausing`: a worker still executes the run. `none`: nothing was changed. */
  effect: z.enum(["paused", "pausing", "resumed", "none"]),
  /** Why it has no effect yet, with a suggested fix. */
  note: z.string().optional(),
});

/** Body of `POST /v1/runs/{id}/signal`. */
export const signalRunSchema = z.strictObject({
  name: shortText,
  /** The run validates it. A payload that does not match the schema of the wait is dropped and listed in `refusedSignals`. */
  payload: z.unknown().optional(),
  /** Each ID is delivered once. Default: derived from the Idempotency-Key, or a UUID. */
  id: id.optional(),
  by: operatorActionSchema.shape.by,
});

/** Body of `POST /v1/runs/{id}/update`. */
export const updateRunSchema = z.strictObject({
  name: shortText,
  /** The run validates it before it accepts the update. */
  payload: z.unknown().optional(),
  /** Repeating an ID sends nothing and returns the answer. Default: derived from the Idempotency-Key, or a UUID. */
  id: id.optional(),
  by: operatorActionSchema.shape.by,
});

/** Response of the same. */
export const runUpdateSchema = z.object({
  /** ID of the update. Send it again to wait longer. */
  id: z.string(),
  /** `pending`: the run has not handled the update yet. */
  status: z.enum(["accepted", "pending"]),
  /** The step that recorded it. */
  step: z.string().optional(),
  /** The value that the workflow computed. */
  answer: z.unknown().optional(),
});

const BAD_LIMITS = "must have steps, bytes or both";
const limit = (most: number) => {
  const message = `must be a whole number from 1 to ${most}`;
  return z.number(message).int(message).min(1, message).max(most, message);
};

/** Body of `POST /v1/runs/{id}/raise`. */
export const raiseRunSchema = operatorActionSchema
  .extend({
    /** New limit of recorded steps. */
    steps: limit(MAX_RUN_LIMITS.steps).optional(),
    /** New limit of the records with their names as JSON. */
    bytes: limit(MAX_RUN_LIMITS.bytes).optional(),
  })
  .refine(({ steps, bytes }) => steps !== undefined || bytes !== undefined, BAD_LIMITS);

/** Body of `POST /v1/runs/{id}/retry`. */
export const retryRunSchema = operatorActionSchema.extend({
  /** Resume the same run after its completed steps instead of starting a new run. */
  fromFailed: z.boolean("must be true or false").default(false),
  /** A step whose compensation is skipped: a blocked compensation continues without it. */
  skipUndo: z.string(BAD_STEP).min(1, BAD_STEP).max(300, BAD_STEP).optional(),
});

export type ActOnRuns = z.output<typeof actOnRunsSchema>;
export type ActOnRunsResponse = z.infer<typeof actOnRunsResponseSchema>;
export type CancelRunResponse = z.infer<typeof cancelRunResponseSchema>;
export type PauseRunResponse = z.infer<typeof pauseRunResponseSchema>;
export type RaiseRun = z.output<typeof raiseRunSchema>;
export type RetryRun = z.output<typeof retryRunSchema>;
export type UpdateRun = z.output<typeof updateRunSchema>;
export type RunUpdate = z.infer<typeof runUpdateSchema>;
export type SignalRun = z.output<typeof signalRunSchema>;
