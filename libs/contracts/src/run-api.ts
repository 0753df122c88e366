import { findLabelIssue, MAX_LABELS, MAX_RUN_LIMITS, RUN_STATUSES } from "@konverge/core";
import { z } from "zod";
import { oneOf, text, wholeNumber } from "./query-fields.ts";
import { operatorActionSchema } from "./queue-api.ts";
import { waitQuerySchema } from "./reconcile-api.ts";

const BAD_WORKFLOW = "must be a workflow name of 1 to 63 characters";
const workflow = z.string(BAD_WORKFLOW).min(1, BAD_WORKFLOW).max(63, BAD_WORKFLOW);
const cluster = text.default("default");
const BAD_ID = "must have 1 to 500 characters without spaces and control characters";
const id = z.string(BAD_ID).regex(/^[^\s\x00-\x1f\x7f-\x9f]{1,500}$/, BAD_ID);
const BAD_SHORT_TEXT = "must have 1 to 200 characters";
const shortText = z.string(BAD_SHORT_TEXT).min(1, BAD_SHORT_TEXT).max(200, BAD_SHORT_TEXT);
const BAD_STEP = "must be the name of a recorded step";
const BAD_SEEN = "must be the status and number of steps of an earlier response, such as waiting/2";
const BAD_CURSOR = "must be the cursor of an earlier response";

const labels = z.record(z.string(), z.string()).superRefine((given, context) => {
  const entries = Object.entries(given);
  for (const [name, value] of entries) {
    const message = findLabelIssue(name, value);
    if (message !== undefined) context.addIssue({ code: "custom", message, path: [name] });
  }
  if (entries.length <= MAX_LABELS) return;
  context.addIssue({ code: "custom", message: `must have at most ${MAX_LABELS} labels` });
});
const BAD_TIME = "must be a time, such as 2026-11-22T08:00:00Z";
const time = z.iso.datetime({ offset: true, error: BAD_TIME });
const BAD_LABELS = `must have 1 to ${MAX_LABELS} labels, such as region=eu,tier=gold`;
/** `name=value`, separated by commas. */
const labelFilter = z
  .string(BAD_LABELS)
  .max(2_000, BAD_LABELS)
  .refine((filter) => {
    const wanted = Object.entries(parseLabels(filter));
    const isValid = wanted.every(([name, value]) => findLabelIssue(name, value) === undefined);
    return isValid && wanted.length <= MAX_LABELS;
  }, BAD_LABELS);

/** Parses `region=eu,tier=gold`. */
export function parseLabels(pairs: string): Record<string, string> {
  return Object.fromEntries(
    pairs.split(",").map((pair) => {
      const [name = "", ...value] = pair.split("=");
      return [name, value.join("=")];
    }),
  );
}

/** Body of `POST /v1/runs`. */
export const startRunSchema = z.strictObject({
  workflow,
  cluster,
  /** Input of the function. The worker validates it; invalid input fails the run. */
  input: z.unknown().optional(),
  /** Starting the same ID again with the same input returns the existing run; another input is rejected. Default: a UUID. */
  id: id.optional(),
  /** At most one run per key is active. */
  key: id.optional(),
  /** Labels by name, at most 10. Runs are found by them. */
  labels: labels.optional(),
  /** Author, stored in the run. With a token, the name of the token. */
  by: operatorActionSchema.shape.by.optional(),
  /** If another run has the key: return that run, fail, cancel it and start when it has ended, or start after it. */
  onExisting: z
    .enum(["attach", "reject", "supersede", "queue"], "must be attach, reject, supersede or queue")
    .default("attach"),
});

/** Response of `POST /v1/runs`. */
export const startRunResponseSchema = z.object({
  /** `<workflow>/<cluster>/<id>`. */
  id: z.string(),
  /** False if the run already existed. */
  created: z.boolean(),
});

const runCursor = z
  .string()
  .max(610, BAD_CURSOR)
  .regex(/^\d{1,16}\/[-a-z0-9]{1,63}\/\S*$/, BAD_CURSOR);

/** Filters of runs, combined with AND. */
const runFilterFields = {
  /** Default: all workflows. */
  workflow: workflow.optional(),
  status: z.enum(RUN_STATUSES, oneOf(RUN_STATUSES)).optional(),
  key: id.optional(),
  /** Author. */
  by: shortText.optional(),
  /** Labels that the run has, such as `region=eu,tier=gold`. */
  label: labelFilter.optional(),
  /** The run was started at this time or later. */
  since: time.optional(),
  /** The run was started before this time. */
  until: time.optional(),
  /** Version of the workflow code. */
  version: wholeNumber(Number.MAX_SAFE_INTEGER).optional(),
  /** Code of the error. */
  error: shortText.optional(),
  /** Substring of the ID, key or author. */
  search: shortText.optional(),
};

/** Query of `GET /v1/runs`. */
export const runQuerySchema = z.strictObject({
  cluster,
  ...runFilterFields,
  limit: wholeNumber(500).default(100),
  /** `next` of an earlier response. */
  cursor: runCursor.optional(),
});

const RUN_ACTIONS = ["cancel", "pause", "resume", "retry", "signal", "terminate"] as const;
const BAD_EXPECT = "must be the number of matching runs, such as 120";

/** Body of `POST /v1/runs/actions`. */
export const actOnRunsSchema = z
  .strictObject({
    cluster,
    action: z.enum(RUN_ACTIONS, oneOf(RUN_ACTIONS)),
    /** Only runs to which the action applies match, also without a filter. `retry` needs a status. */
    filter: z.strictObject(runFilterFields).default({}),
    /** Only counts the matching runs. */
    dryRun: z.boolean("must be true or false").default(false),
    /** The action is rejected if the number of matching runs differs. */
    expect: z.int(BAD_EXPECT).min(0, BAD_EXPECT).optional(),
    /** `next` of an earlier response: continue there. */
    cursor: runCursor.optional(),
    /** With `retry`: resume the same runs after their completed steps instead of starting new runs. */
    fromFailed: z.boolean("must be true or false").default(false),
    /** Required for `signal`. */
    signal: z.strictObject({ name: shortText, payload: z.unknown().optional() }).optional(),
    ...operatorActionSchema.shape,
  })
  .superRefine(({ action, signal, expect, cursor: from, dryRun }, context) => {
    const reject = (path: string, message: string) =>
      context.addIssue({ code: "custom", path: [path], message });
    if ((action === "signal") !== (signal !== undefined)) {
      reject("signal", 'is required for the action "signal", and for no other one');
    }
    if (from === undefined) return;
    if (expect !== undefined) reject("expect", "cannot be combined with cursor");
    if (dryRun) reject("dryRun", "cannot be combined with cursor");
  });

/** Response of the same. */
export const actOnRunsResponseSchema = z.object({
  dryRun: z.boolean(),
  /** Matching runs; without `dryRun`, those that this request has visited. */
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

/** Query of `GET /v1/runs/{id}`. */
export const runWaitQuerySchema = z.strictObject({
  ...waitQuerySchema.shape,
  /**
   * With `wait`: also return once `<status>/<number of steps>`, from round 2 on with `/<round>`, differs from this value. With `~` and
   * the time of the last heartbeat in epoch ms or 0 behind it, also return with each heartbeat.
   */
  lastState: z
    .string(BAD_SEEN)
    .regex(/^[a-z]{1,20}\/\d{1,6}(\/\d{1,15})?(~\d{1,15})?$/, BAD_SEEN)
    .optional(),
});

const failure = z.object({
  code: z.string(),
  message: z.string(),
  /** Where it was thrown, as `at function (file:line:column)`; of the error, then of its causes. */
  frames: z.array(z.string()).optional(),
});
const stepKind = z.enum([
  "step",
  "sleep",
  "signal",
  "child",
  "now",
  "undo",
  "update",
  "wait",
  "race",
]);
const runFields = {
  id: z.string(),
  workflow: z.string(),
  cluster: z.string(),
  /** Version of the workflow code. */
  version: z.number(),
  status: z.enum(RUN_STATUSES),
  /** The failure or cancellation. */
  error: failure.optional(),
  /** Why the run is blocked, with a suggested fix. */
  blockedReason: z.string().optional(),
  /** The error of the function that blocks the run. */
  blockedError: failure.optional(),
  key: z.string().optional(),
  labels: z.record(z.string(), z.string()).optional(),
  /** ID of the parent run. */
  parent: z.string().optional(),
  /** Author: a token name, `controller <name>/<object>` or `schedule <name>`. */
  by: z.string().optional(),
  /** Author and reason of the cancellation. */
  cancel: z.object({ by: z.string().optional(), reason: z.string().optional() }).optional(),
  /** Author, reason and time of the pause, while the run is paused or about to be. */
  pause: z
    .object({ by: z.string().optional(), reason: z.string().optional(), at: z.string() })
    .optional(),
  /** Author and reason of the termination: the run ended without compensation. */
  terminated: z.object({ by: z.string().optional(), reason: z.string().optional() }).optional(),
  /** Set for a retry: the original run, unless the same run resumed, with author and reason. */
  retry: z
    .object({
      originalRun: z.string().optional(),
      by: z.string().optional(),
      reason: z.string().optional(),
    })
    .optional(),
  /** Limits of the records that an operator has raised for this run. */
  limits: z.object({ steps: z.number().optional(), bytes: z.number().optional() }).optional(),
  /** The time of the schedule for which the run was started. */
  scheduledAt: z.string().optional(),
  /** The round, from 2, of a run that has continued with another input. The records of earlier rounds are dropped. */
  round: z.number().optional(),
  roundStartedAt: z.string().optional(),
  createdAt: z.string(),
  startedAt: z.string().optional(),
  endedAt: z.string().optional(),
  /** Limits that the run has reached half of. It fails at the limit. */
  warnings: z.array(z.object({ code: z.string(), message: z.string() })).optional(),
  /** The current waits. */
  waits: z
    .array(
      z.object({
        step: z.string(),
        kind: stepKind,
        since: z.string().optional(),
        /** Time at which the wait ends by itself. */
        until: z.string().optional(),
        /** For a wait for objects: the unmet condition at the last check. */
        message: z.string().optional(),
        /** Run ID of the child. */
        child: z.string().optional(),
      }),
    )
    .optional(),
};

/** Response of `GET /v1/runs`, newest first. A short or empty page can still have a `next`. */
export const runListSchema = z.object({
  items: z.array(z.object(runFields)),
  next: z.string().optional(),
});

/** Response of `GET /v1/runs/{id}` and of each action on a run. */
export const runSchema = z.object({
  ...runFields,
  input: z.unknown().optional(),
  result: z.unknown().optional(),
  /** The values that the function has published with `w.set`, by name. */
  published: z.record(z.string(), z.unknown()).optional(),
  /** The recorded steps, oldest first. */
  steps: z.array(
    z.object({
      name: z.string(),
      kind: stepKind,
      /** Start of the first try or of the wait, if it differs from `at`. */
      startedAt: z.string().optional(),
      /** True for the first record after a worker was lost; that worker may have started the step before. */
      workerLost: z.boolean().optional(),
      /** Time of the record. */
      at: z.string(),
      /** End of a sleep. */
      until: z.string().optional(),
      attempts: z.number().optional(),
      /** Author and reason of a skipped compensation. */
      skipped: z.object({ by: z.string().optional(), reason: z.string().optional() }).optional(),
      /** Sender of the signal. */
      by: z.string().optional(),
      /** Run ID of the child. */
      child: z.string().optional(),
      /** Branch of a race that was first. */
      branch: z.string().optional(),
      value: z.unknown().optional(),
      error: failure.optional(),
    }),
  ),
  /** The unfinished steps that have sent a heartbeat or had a failed attempt. */
  progress: z
    .array(
      z.object({
        step: z.string(),
        /** Failed attempts. */
        attempts: z.number(),
        /** The failure of the last attempt. */
        message: z.string().optional(),
        heartbeat: z
          .object({
            at: z.string(),
            attempt: z.number(),
            progress: z.unknown().optional(),
          })
          .optional(),
      }),
    )
    .optional(),
  /** Time of the last heartbeat of a step. */
  heartbeatAt: z.string().optional(),
  /** Of a run that is blocked, being compensated or terminated: the recorded steps whose compensation has not run, the last recorded first. */
  undosLeft: z.array(z.string()).optional(),
  /** The first 20 signals that the run has not consumed: no wait has reached them, or no wait has their name. */
  unconsumedSignals: z
    .array(
      z.object({ name: z.string(), id: z.string(), by: z.string().optional(), at: z.string() }),
    )
    .optional(),
  /** Signals that were dropped because their payload did not match the schema of the wait. */
  refusedSignals: z
    .object({
      count: z.number(),
      /** The last 10, newest first. */
      last: z.array(
        z.object({
          name: z.string(),
          id: z.string(),
          by: z.string().optional(),
          at: z.string(),
          /** How the payload differs from the schema. */
          message: z.string(),
        }),
      ),
    })
    .optional(),
});

/** Response of `GET /v1/runs/{id}/history`: all that an execution of the run reads, for a replay. Times are epoch ms. */
export const runHistorySchema = z.object({
  format: z.literal("konverge.dev/run-history/v1"),
  workflow: z.string(),
  /** Without workflow and cluster. */
  id: z.string(),
  /** Version of the workflow code that started the run. */
  version: z.number(),
  /** The highest version of the code that has recorded steps, if that is another one. */
  continuedBy: z.number().optional(),
  status: z.enum(RUN_STATUSES),
  createdAtMs: z.number(),
  input: z.unknown().optional(),
  /** The input as its schema parsed it, if that differs. */
  parsedInput: z.unknown().optional(),
  result: z.unknown().optional(),
  error: failure.optional(),
  /** Status and error that the run gets when its steps are undone. */
  failing: z.object({ status: z.enum(["failed", "cancelled"]), error: failure }).optional(),
  /** The records, oldest first. */
  steps: z.array(z.looseObject({ name: z.string(), kind: stepKind })),
  /** The begun steps and waits without a record. */
  progress: z.array(z.looseObject({ name: z.string(), attempts: z.number() })),
});

/** Query of `GET /v1/run-histories`. */
export const runHistoryQuerySchema = z.strictObject({
  cluster,
  workflow,
  status: z.enum(RUN_STATUSES, oneOf(RUN_STATUSES)).optional(),
  limit: wholeNumber(100).default(50),
  cursor: runQuerySchema.shape.cursor,
});

/** Response of the same, newest first. A page with long histories is short, and has a `next`. */
export const runHistoryListSchema = z.object({
  items: z.array(runHistorySchema),
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
  /** Each ID is delivered once. Default: a UUID. */
  id: id.optional(),
  by: operatorActionSchema.shape.by,
});

/** Response of `GET /v1/runs/{id}/logs`: the last 200 lines, oldest first. */
export const runLogSchema = z.object({
  items: z.array(
    z.object({
      at: z.string(),
      level: z.enum(["debug", "info", "warn", "error"]),
      message: z.string(),
      /** The step whose body has logged it; missing for the function. */
      step: z.string().optional(),
      attempt: z.number().optional(),
      fields: z.record(z.string(), z.unknown()).optional(),
    }),
  ),
});

/** Body of `POST /v1/runs/{id}/update`. */
export const updateRunSchema = z.strictObject({
  name: shortText,
  /** The run validates it before it accepts the update. */
  payload: z.unknown().optional(),
  /** Repeating an ID sends nothing and returns the answer. Default: a UUID. */
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

export type StartRun = z.output<typeof startRunSchema>;
export type StartRunResponse = z.infer<typeof startRunResponseSchema>;
export type RunListQuery = z.output<typeof runQuerySchema>;
export type RunFilterQuery = Omit<RunListQuery, "cluster" | "limit" | "cursor">;
export type ActOnRuns = z.output<typeof actOnRunsSchema>;
export type ActOnRunsResponse = z.infer<typeof actOnRunsResponseSchema>;
export type RunList = z.infer<typeof runListSchema>;
export type RunHistoryItem = z.infer<typeof runHistorySchema>;
export type RunHistoryList = z.infer<typeof runHistoryListSchema>;
export type RunHistoryQuery = z.output<typeof runHistoryQuerySchema>;
export type RunDetail = z.infer<typeof runSchema>;
export type CancelRunResponse = z.infer<typeof cancelRunResponseSchema>;
export type PauseRunResponse = z.infer<typeof pauseRunResponseSchema>;
export type RaiseRun = z.output<typeof raiseRunSchema>;
export type RetryRun = z.output<typeof retryRunSchema>;
export type RunLog = z.infer<typeof runLogSchema>;
export type UpdateRun = z.output<typeof updateRunSchema>;
export type RunUpdate = z.infer<typeof runUpdateSchema>;
export type SignalRun = z.output<typeof signalRunSchema>;
