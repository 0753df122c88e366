import { KEY_PHASES, WORKER_ROLES } from "@konverge/core";
import { z } from "zod";

/** Who holds back what, why and since when. */
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

/** How a key stands. */
export const keyFields = {
  key: z.string(),
  phase: z.enum(KEY_PHASES),
  failures: z.number(),
  conflicts: z.number(),
  lastOutcome: z.string().optional(),
  /** Id of the last request, as long as it has not ended: what can be cancelled. */
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

const sayText = "write a text of 1 to 253 characters";
const text = z.string(sayText).min(1, sayText).max(253, sayText);
const sayWho = "say who, in at most 200 characters";
const sayWhy = "say why, in at most 200 characters";
const sayLimit = "write a whole number from 1 to 1000";

/**
 * Body of `POST /v1/reconciles/{id}/cancel`: every order is kept with who gave it and why. Of a request with a token the
 * author is the token's name, whatever `by` says, and it may be left out.
 */
export const operatorActionSchema = z.strictObject({
  by: z.string(sayWho).trim().min(1, sayWho).max(200, sayWho),
  reason: z.string(sayWhy).trim().min(1, sayWhy).max(200, sayWhy),
});

/** Answer of the same. The state is that of a moment later, so an aborted attempt may still run. */
export const cancelResponseSchema = z.object({
  id: z.string(),
  result: z.enum(["alreadyFinished", "cancelled", "detached", "aborting"]),
});

/** Query of `GET /v1/keys` and `GET /v1/dead-letters`; all that is given must hold. */
export const keyQuerySchema = z.strictObject({
  cluster: text.default("default"),
  controller: text.optional(),
  phase: z.enum(KEY_PHASES, `write one of ${KEY_PHASES.join(", ")}`).optional(),
  /** `_` for cluster-scoped objects. */
  namespace: text.optional(),
  /** Any part of the object's name. */
  name: text.optional(),
  limit: z.coerce.number(sayLimit).int(sayLimit).min(1, sayLimit).max(1_000, sayLimit).default(100),
  /** `next` of an earlier answer. */
  cursor: z.string().max(2_000).optional(),
});
export const deadLetterQuerySchema = keyQuerySchema.omit({ phase: true });

/** Answer of both, by key. A page may be short and still have a `next`. */
export const keyListSchema = z.object({
  items: z.array(z.object(keyFields)),
  next: z.string().optional(),
});

/**
 * Body of `POST /v1/pauses` and `POST /v1/pauses/resume`: an object (controller, namespace where it has one, name), a
 * namespace (of one controller, or of all that are known), or a controller.
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
      name === undefined ? "name a controller, a namespace, or both" : "say whose key it is";
    context.addIssue({ code: "custom", path: ["controller"], message });
  });

/** Answer of `GET /v1/pauses` and `POST /v1/pauses`, with the controller of each. */
export const pauseListSchema = z.object({
  items: z.array(z.object({ controller: z.string(), ...pauseSchema.shape })),
});
/** Query of `GET /v1/pauses`. */
export const pausesQuerySchema = z.strictObject({ cluster: text.default("default") });
/** Answer of `POST /v1/pauses/resume`: keys that were waiting for it. */
export const resumeResponseSchema = z.object({ resumed: z.number() });

/** Body of `POST /v1/dead-letters/release`: one object by `name`, or all that match. */
export const releaseActionSchema = z
  .strictObject({
    cluster: text.default("default"),
    controller: text,
    namespace: text.optional(),
    name: text.optional(),
    /** Any part of the name. */
    contains: text.optional(),
    /** Only says how many there are. */
    dryRun: z.boolean("write true or false").default(false),
    ...operatorActionSchema.shape,
  })
  .superRefine(({ name, contains }, context) => {
    if (name === undefined || contains === undefined) return;
    const message = "give either name or contains";
    context.addIssue({ code: "custom", path: ["contains"], message });
  });
export const releaseResponseSchema = z.object({ count: z.number(), dryRun: z.boolean() });

/** Query of `GET /v1/operator-actions`. */
export const operatorActionsQuerySchema = z.strictObject({
  cluster: text.default("default"),
  controller: text,
});
/** Answer of the same: what people ordered, newest first, at most 200. */
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

/** Query of `GET /v1/controllers`, `GET /v1/workers` and `GET /v1/queues`; left out, the cluster of the API's own configuration. */
export const clusterQuerySchema = z.strictObject({ cluster: text.optional() });

/** Answer of `GET /v1/controllers`: what workers have announced. */
export const controllerListSchema = z.object({
  items: z.array(
    z.object({
      name: z.string(),
      cluster: z.string(),
      group: z.string(),
      version: z.string(),
      kind: z.string(),
      /** Plural. */
      resource: z.string(),
      scope: z.enum(["Namespaced", "Cluster"]),
    }),
  ),
});

/** Answer of `GET /v1/workers`: those that gave a sign of life within the last 15 s. */
export const workerListSchema = z.object({
  items: z.array(
    z.object({
      workerId: z.string(),
      controllers: z.array(z.string()).readonly(),
      /** By controller: what it reconciles, and which version of its code. */
      definitions: z.record(z.string(), z.object({ kind: z.string(), digest: z.string() })),
      /** Versions of the workflows that it runs, by name. */
      workflows: z.record(z.string(), z.number()).optional(),
      role: z.enum(WORKER_ROLES),
      version: z.string(),
      startedAt: z.string(),
      host: z.string(),
    }),
  ),
});

/** Answer of `GET /v1/queues`: how much of each controller waits. */
export const queueListSchema = z.object({
  items: z.array(
    z.object({
      cluster: z.string(),
      controller: z.string(),
      kind: z.string(),
      waiting: z.number(),
      active: z.number(),
      delayed: z.number(),
      workers: z.number(),
      pauses: z.array(pauseSchema),
    }),
  ),
  /** Executions of runs: those that are to come, run, and are put off until their time. */
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
