import { RUN_STATUSES } from "@konverge/core";
import { z } from "zod";
import { waitQuerySchema } from "./http-api.ts";
import { operatorActionSchema } from "./queue-api.ts";

const sayWorkflow = "write the name of a workflow";
const workflow = z.string(sayWorkflow).min(1, sayWorkflow).max(63, sayWorkflow);
const sayCluster = "write a text of 1 to 253 characters";
const cluster = z.string(sayCluster).min(1, sayCluster).max(253, sayCluster).default("default");
const sayId = "write 1 to 500 characters without spaces";
const id = z.string(sayId).regex(/^\S{1,500}$/, sayId);
const saySignal = "write the signal's name, 1 to 200 characters";
const sayText = "write a text of 1 to 200 characters";
const text = z.string(sayText).min(1, sayText).max(200, sayText);
const saySeen = "write status and number of steps of an earlier answer, such as waiting/2";
const sayCursor = "take the cursor of an earlier answer";
const sayLimit = "write a whole number from 1 to 500";

/** Body of `POST /v1/runs`. */
export const startRunSchema = z.strictObject({
  workflow,
  cluster,
  /** What the function gets. Checked by the worker: what does not fit fails the run. */
  input: z.unknown().optional(),
  /** Starting the same again answers the run that is there. Default: a UUID. */
  id: id.optional(),
  /** At most one run with this key goes on at a time. */
  key: id.optional(),
  /** Who starts it; kept in the run. With a token it is the token's name. */
  by: operatorActionSchema.shape.by.optional(),
  /** When another one does: answer that, refuse, or cancel it and begin when it has ended. */
  onExisting: z
    .enum(["attach", "reject", "supersede"], "write attach, reject or supersede")
    .default("attach"),
});

/** Answer of the same. */
export const startRunResponseSchema = z.object({
  /** `<workflow>/<cluster>/<id>`. */
  id: z.string(),
  /** False when the answer is a run that was there. */
  created: z.boolean(),
});

/** Query of `GET /v1/runs`. */
export const runQuerySchema = z.strictObject({
  cluster,
  /** Left out: of all workflows. */
  workflow: workflow.optional(),
  status: z.enum(RUN_STATUSES, `write one of ${RUN_STATUSES.join(", ")}`).optional(),
  key: id.optional(),
  /** Who started it. */
  by: text.optional(),
  /** Part of the id, the key or who started it. */
  search: text.optional(),
  limit: z.coerce.number(sayLimit).int(sayLimit).min(1, sayLimit).max(500, sayLimit).default(100),
  /** `next` of an earlier answer. */
  cursor: z
    .string()
    .max(600, sayCursor)
    .regex(/^\d{1,15}\/[-a-z0-9]{1,63}\/\S+$/, sayCursor)
    .optional(),
});

/** Query of `GET /v1/runs/{id}`. */
export const runWaitQuerySchema = z.strictObject({
  ...waitQuerySchema.shape,
  /** With `wait`: answer as well once the run does not stand like this, `<status>/<number of steps>`. */
  lastState: z
    .string(saySeen)
    .regex(/^[a-z]{1,20}\/\d{1,4}$/, saySeen)
    .optional(),
});

const failure = z.object({ code: z.string(), message: z.string() });
const stepKind = z.enum(["step", "sleep", "signal", "child", "now", "undo", "wait"]);
const runFields = {
  id: z.string(),
  workflow: z.string(),
  cluster: z.string(),
  /** Of the code that it was started for. */
  version: z.number(),
  status: z.enum(RUN_STATUSES),
  /** How it failed, or was cancelled. */
  error: failure.optional(),
  /** Why it is stuck, and what to do. */
  blockedReason: z.string().optional(),
  key: z.string().optional(),
  /** Id of the run that started it. */
  parent: z.string().optional(),
  /** Who started it: a token, `controller <name>/<object>`, `schedule <name>`. */
  by: z.string().optional(),
  /** The order to cancel it. */
  cancel: z.object({ by: z.string().optional(), reason: z.string().optional() }).optional(),
  /** That it is another try, of which run, or that it went on where it had failed; on whose order. */
  retry: z
    .object({
      originalRun: z.string().optional(),
      by: z.string().optional(),
      reason: z.string().optional(),
    })
    .optional(),
  createdAt: z.string(),
  startedAt: z.string().optional(),
  endedAt: z.string().optional(),
  /** Bounds that it has reached half of; at the whole it fails. */
  warnings: z.array(z.object({ code: z.string(), message: z.string() })).optional(),
  /** What it waits for while it is parked. */
  waits: z
    .array(
      z.object({
        step: z.string(),
        kind: stepKind,
        since: z.string().optional(),
        /** When it ends by itself. */
        until: z.string().optional(),
        /** Of a wait for objects: what they lacked at the last look. */
        message: z.string().optional(),
        /** Id of the child's run. */
        child: z.string().optional(),
      }),
    )
    .optional(),
};

/** Answer of `GET /v1/runs`, newest first. A page may be short, even empty, while there is a `next`. */
export const runListSchema = z.object({
  items: z.array(z.object(runFields)),
  next: z.string().optional(),
});

/** Answer of `GET /v1/runs/{id}`, and of orders to it: how it stands then. */
export const runSchema = z.object({
  ...runFields,
  input: z.unknown().optional(),
  result: z.unknown().optional(),
  /** What is recorded, in the order of recording. */
  steps: z.array(
    z.object({
      name: z.string(),
      kind: stepKind,
      /** When its first try or its wait began; absent where that is `at`. */
      startedAt: z.string().optional(),
      /** True for the first record behind the loss of a worker, which may have begun this step before. */
      workerLost: z.boolean().optional(),
      /** When it was recorded. */
      at: z.string(),
      /** Of a sleep. */
      until: z.string().optional(),
      attempts: z.number().optional(),
      /** Who sent the signal. */
      by: z.string().optional(),
      /** Id of the child's run. */
      child: z.string().optional(),
      value: z.unknown().optional(),
      error: failure.optional(),
    }),
  ),
  /** Signals that it has not taken: not come to yet, or of a name that it never waits for. The first 20. */
  unconsumedSignals: z
    .array(
      z.object({ name: z.string(), id: z.string(), by: z.string().optional(), at: z.string() }),
    )
    .optional(),
});

/** Query of `GET /v1/schedules`. */
export const scheduleQuerySchema = z.strictObject({ cluster });

/** Answer of the same: what starts runs by the clock, as the workers that do so have told. */
export const scheduleListSchema = z.object({
  items: z.array(
    z.object({
      name: z.string(),
      workflow: z.string(),
      cluster: z.string(),
      /** When it is due: `cron 0 3 * * * UTC` or `every 3600000 ms`. */
      schedule: z.string(),
      /** False once no worker has it any more: it starts nothing. */
      active: z.boolean(),
      seenAt: z.string(),
      /** While it is live. */
      nextAt: z.string().optional(),
      /** Id of the run that stands for the last time. */
      run: z.string().optional(),
    }),
  ),
});

/** Body of `POST /v1/runs/{id}/signal`. */
export const signalRunSchema = z.strictObject({
  name: z.string(saySignal).min(1, saySignal).max(200, saySignal),
  /** Checked by the run: what does not fit the schema of its wait is dropped, with a line among its steps. */
  payload: z.unknown().optional(),
  /** The same id is delivered once. Default: a UUID. */
  id: id.optional(),
  by: operatorActionSchema.shape.by,
});

/** Body of `POST /v1/runs/{id}/retry`. */
export const retryRunSchema = operatorActionSchema.extend({
  /** The same run goes on behind what succeeded, in place of a new one from the start. */
  fromFailed: z.boolean("write true or false").default(false),
});

export type StartRun = z.output<typeof startRunSchema>;
export type StartRunResponse = z.infer<typeof startRunResponseSchema>;
export type RunListQuery = z.output<typeof runQuerySchema>;
export type RunList = z.infer<typeof runListSchema>;
export type RunDetail = z.infer<typeof runSchema>;
export type ScheduleList = z.infer<typeof scheduleListSchema>;
export type RetryRun = z.output<typeof retryRunSchema>;
export type SignalRun = z.output<typeof signalRunSchema>;
