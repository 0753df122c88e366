import { KEY_PHASES, WORKER_ROLES } from "@konverge/core";
import { z } from "zod";
import { oneOf, text, wholeNumber } from "./query-fields.ts";

/** A pause with its author, reason and time. */
export const pauseSchema = z.object({
  scope: z.discriminatedUnion("kind", [
    z.object({ kind: z.literal("controller") }),
    z.object({ kind: z.literal("namespace"), namespace: z.string() }),
    z.object({ kind: z.literal("key"), key: z.string() }),
  ]),
  by: z.string(),
  reason: z.string(),
  since: z.string(),
});

/** The state of a key. */
export const keyFields = {
  key: z.string(),
  phase: z.enum(KEY_PHASES),
  failures: z.number(),
  conflicts: z.number(),
  lastOutcome: z.string().optional(),
  /** ID of the last request, if it has not ended and can be cancelled. */
  pending: z.string().optional(),
  nextAt: z.string().optional(),
  paused: pauseSchema.optional(),
  deadLetter: z
    .object({
      since: z.string(),
      error: z.object({ code: z.string(), message: z.string() }).optional(),
    })
    .optional(),
};

const BAD_NOTE = "must have 1 to 200 characters";
const note = z.string(BAD_NOTE).trim().min(1, BAD_NOTE).max(200, BAD_NOTE);

/**
 * Body of `POST /v1/reconciles/{id}/cancel`: the author and reason of an action. With a token, the author is the name of
 * the token, and `by` is optional and ignored.
 */
export const operatorActionSchema = z.strictObject({ by: note, reason: note });

/** Response of the same. With `aborting`, the attempt may still run for a moment. */
export const cancelResponseSchema = z.object({
  id: z.string(),
  result: z.enum(["alreadyFinished", "cancelled", "detached", "aborting"]),
});

/** Query of `GET /v1/keys` and `GET /v1/dead-letters`; filters are combined with AND. */
export const keyQuerySchema = z.strictObject({
  cluster: text.default("default"),
  controller: text.optional(),
  phase: z.enum(KEY_PHASES, oneOf(KEY_PHASES)).optional(),
  /** `_` for cluster-scoped objects. */
  namespace: text.optional(),
  /** Substring of the object name. */
  name: text.optional(),
  limit: wholeNumber(1_000).default(100),
  /** `next` of an earlier response. */
  cursor: z.string().max(2_000).optional(),
});
export const deadLetterQuerySchema = keyQuerySchema.omit({ phase: true });

/** Response of both, by key. A short page can still have a `next`. */
export const keyListSchema = z.object({
  items: z.array(z.object(keyFields)),
  next: z.string().optional(),
});

/**
 * Body of `POST /v1/pauses` and `POST /v1/pauses/resume`. Selects an object (controller, namespace if any, name), a
 * namespace (of one controller or of all existing ones), or a controller.
 */
export const pauseActionSchema = z
  .strictObject({
    cluster: text.default("default"),
    controller: text.optional(),
    namespace: text.optional(),
    name: text.optional(),
    ...operatorActionSchema.shape,
  })
  .superRefine(({ controller, namespace, name }, context) => {
    if (controller !== undefined || (namespace !== undefined && name === undefined)) return;
    const message =
      name === undefined ? "a controller or a namespace is required" : "required with a name";
    context.addIssue({ code: "custom", path: ["controller"], message });
  });

/** Response of `GET /v1/pauses` and `POST /v1/pauses`. */
export const pauseListSchema = z.object({
  items: z.array(z.object({ controller: z.string(), ...pauseSchema.shape })),
});
/** Query of `GET /v1/pauses`. */
export const pausesQuerySchema = z.strictObject({ cluster: text.default("default") });
/** Response of `POST /v1/pauses/resume`: the number of keys with pending requests. */
export const resumeResponseSchema = z.object({ resumed: z.number() });

/** Body of `POST /v1/dead-letters/release`: one object by `name`, or all that match. */
export const releaseActionSchema = z
  .strictObject({
    cluster: text.default("default"),
    controller: text,
    namespace: text.optional(),
    name: text.optional(),
    /** Substring of the object name. */
    contains: text.optional(),
    /** Only counts the matching keys. */
    dryRun: z.boolean("must be true or false").default(false),
    ...operatorActionSchema.shape,
  })
  .superRefine(({ name, contains }, context) => {
    if (name === undefined || contains === undefined) return;
    const message = "cannot be combined with name";
    context.addIssue({ code: "custom", path: ["contains"], message });
  });
export const releaseResponseSchema = z.object({ count: z.number(), dryRun: z.boolean() });

/** Query of `GET /v1/operator-actions`. */
export const operatorActionsQuerySchema = z.strictObject({
  cluster: text.default("default"),
  controller: text,
});
/** Response of the same: operator actions, newest first, at most 200. */
export const operatorActionListSchema = z.object({
  items: z.array(
    z.object({
      kind: z.enum(["pause", "resume", "cancel", "release"]),
      scope: z.string(),
      by: z.string(),
      reason: z.string(),
      at: z.string(),
      count: z.number().optional(),
    }),
  ),
});

/** Query of `GET /v1/controllers`, `GET /v1/workers` and `GET /v1/queues`. Default: the cluster of the API process. */
export const clusterQuerySchema = z.strictObject({ cluster: text.optional() });

/** Response of `GET /v1/controllers`: the controllers that workers have announced. */
export const controllerListSchema = z.object({
  items: z.array(
    z.object({
      name: z.string(),
      cluster: z.string(),
      group: z.string(),
      version: z.string(),
      kind: z.string(),
      /** Plural name. */
      resource: z.string(),
      scope: z.enum(["Namespaced", "Cluster"]),
    }),
  ),
});

/** Response of `GET /v1/workers`: the workers with a heartbeat in the last 15 s. */
export const workerListSchema = z.object({
  items: z.array(
    z.object({
      workerId: z.string(),
      controllers: z.array(z.string()).readonly(),
      /** The kind and code digest of each controller. */
      definitions: z.record(z.string(), z.object({ kind: z.string(), digest: z.string() })),
      /** Versions of the workflows, by name. */
      workflows: z.record(z.string(), z.number()).optional(),
      role: z.enum(WORKER_ROLES),
      version: z.string(),
      startedAt: z.string(),
      host: z.string(),
      /** The caches of its watches; only for callers without a limited scope. Bytes are of JSON, estimated. */
      caches: z
        .array(z.object({ resource: z.string(), objects: z.number(), bytes: z.number() }))
        .readonly()
        .optional(),
      /** The load at the last heartbeat. */
      load: z
        .object({
          /** Running attempts and their upper bound, by controller. */
          slots: z.record(z.string(), z.object({ running: z.number(), limit: z.number() })),
          memoryBytes: z.number(),
          heapBytes: z.number(),
          heapLimitBytes: z.number(),
          /** 99th percentile of the delay of timers in the last 5 s. */
          eventLoopDelayMs: z.number(),
          calls: z.object({
            /** Calls that the guard admitted and deferred since the start of the worker. */
            admitted: z.number(),
            deferred: z.number(),
            /** Calls that wait for a token, by class. */
            waiting: z.record(z.string(), z.number()),
            inFlight: z.number(),
          }),
          /** Ended attempts of the last minute. */
          attemptsPerMinute: z.number().optional(),
          /** Controllers whose watches the worker leads. */
          leads: z.array(z.string()).readonly().optional(),
        })
        .optional(),
    }),
  ),
});

/** Response of `GET /v1/queues`: queue lengths by controller and workflow. */
export const queueListSchema = z.object({
  items: z.array(
    z.object({
      cluster: z.string(),
      controller: z.string(),
      kind: z.string(),
      waiting: z.number(),
      active: z.number(),
      delayed: z.number(),
      /** Number of known objects, and of dead-lettered ones; omitted for tokens that are limited to namespaces. */
      keys: z.number().optional(),
      deadLettered: z.number().optional(),
      workers: z.number(),
      pauses: z.array(pauseSchema),
    }),
  ),
  /** Executions of runs: waiting, active, and delayed until their time. */
  workflows: z.array(
    z.object({
      cluster: z.string(),
      workflow: z.string(),
      waiting: z.number(),
      active: z.number(),
      delayed: z.number(),
      workers: z.number(),
    }),
  ),
});

export type ControllerList = z.infer<typeof controllerListSchema>;
export type WorkerList = z.infer<typeof workerListSchema>;
export type QueueList = z.infer<typeof queueListSchema>;
export type KeyItem = z.infer<z.ZodObject<typeof keyFields>>;
export type PauseView = z.infer<typeof pauseSchema>;
export type CancelResponse = z.infer<typeof cancelResponseSchema>;
export type KeyListQuery = z.output<typeof keyQuerySchema>;
export type KeyList = z.infer<typeof keyListSchema>;
export type PauseAction = z.output<typeof pauseActionSchema>;
export type PauseList = z.infer<typeof pauseListSchema>;
export type ResumeResponse = z.infer<typeof resumeResponseSchema>;
export type ReleaseAction = z.output<typeof releaseActionSchema>;
export type ReleaseResponse = z.infer<typeof releaseResponseSchema>;
export type OperatorActionList = z.infer<typeof operatorActionListSchema>;
