import { RUN_STATUSES } from "@konverge/core";
import { z } from "zod";
import { wholeNumber } from "./query-fields.ts";
import { operatorActionSchema } from "./queue-api.ts";
import { waitQuerySchema } from "./reconcile-api.ts";
import {
  cluster,
  failure,
  id,
  labels,
  runCursor,
  runFilterFields,
  stepKind,
  workflow,
} from "./run-fields.ts";

const BAD_SEEN = "must be the status and number of steps of an earlier response, such as waiting/2";

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

/** Query of `GET /v1/runs`. */
export const runQuerySchema = z.strictObject({
  cluster,
  ...runFilterFields,
  limit: wholeNumber(500).default(100),
  /** `next` of an earlier response. */
  cursor: runCursor.optional(),
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

const failedTries = z.array(
  z.object({
    /** Number of the try; missing if it is not counted. */
    attempt: z.number().optional(),
    at: z.string(),
    code: z.string(),
    /** At most 200 characters. */
    message: z.string(),
  }),
);

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
  blockedAt: z.string().optional(),
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
  /** Set while the run waits for a slot of its workflow, before its function begins. */
  slotWait: z
    .object({
      /** Its key, or the value of its label; missing if all runs share the slots. */
      group: z.string().optional(),
      /** Number of runs before it; missing in lists. */
      ahead: z.number().optional(),
    })
    .optional(),
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
        /** The call in the code of the workflow, as `at name (file:line:column)`. */
        position: z.string().optional(),
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
      /** The last failed tries before the one that ended the step, oldest first; at most 5. */
      tries: failedTries.optional(),
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
        /** Number of attempts after which the step fails; missing without a limit. */
        maxAttempts: z.number().optional(),
        /** The failure of the last attempt. */
        message: z.string().optional(),
        /** The last failed tries, oldest first; at most 5. */
        tries: failedTries.optional(),
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

export type StartRun = z.output<typeof startRunSchema>;
export type StartRunResponse = z.infer<typeof startRunResponseSchema>;
export type RunListQuery = z.output<typeof runQuerySchema>;
export type RunFilterQuery = Omit<RunListQuery, "cluster" | "limit" | "cursor">;
export type RunList = z.infer<typeof runListSchema>;
export type RunDetail = z.infer<typeof runSchema>;
export type RunLog = z.infer<typeof runLogSchema>;
