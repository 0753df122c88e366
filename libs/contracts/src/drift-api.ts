import { planRecordSchema } from "@konverge/records";
import { z } from "zod";
import { text } from "./query-fields.ts";

const action = z.enum(["created", "changed", "deleted", "replaced"]);

const change = z.object({
  /** `plural.group`. */
  resource: z.string(),
  kind: z.string(),
  namespace: z.string().optional(),
  name: z.string(),
  action,
  /** Paths of the fields that would change, sorted. Empty for other actions. */
  fields: z.array(z.string()),
  /** The managers that own these fields, and when each of them last wrote the object. */
  moved: z.array(z.object({ manager: z.string(), path: z.string(), at: z.string().optional() })),
});

/** The difference between an object and what its observing controller would make of it. Times are ISO 8601. */
export const driftSchema = z.object({
  key: z.string(),
  cluster: z.string(),
  controller: z.string(),
  namespace: z.string().optional(),
  name: z.string(),
  /** The first plan since the object had no drift. */
  since: z.string(),
  /** The stored plan. */
  at: z.string(),
  summary: planRecordSchema.shape.summary,
  changes: z.array(change),
  /** Number of changes that are not listed. */
  moreChanges: z.number().int().optional(),
});

/** Equal changes of several objects. */
const group = z.object({
  controller: z.string(),
  kind: z.string(),
  action,
  fields: z.array(z.string()),
  /** The managers that own the fields. */
  managers: z.array(z.string()),
  /** Number of changed objects. */
  count: z.number().int(),
  /** The oldest drift. */
  since: z.string(),
  /** Keys of the first objects that are reconciled. */
  examples: z.array(z.string()),
});

/** Response of `GET /v1/drift`: at most 1,000 objects, oldest drift first. */
export const driftListSchema = z.object({
  /** The controllers that observe. */
  controllers: z.array(z.string()),
  /** Number of objects with drift. */
  objects: z.number().int(),
  /** Equal changes, the most frequent first; at most 200. */
  groups: z.array(group),
  items: z.array(driftSchema),
});

/** Response of `GET /v1/drift/{cluster}/{controller}/{namespace}/{name}`. */
export const driftDetailSchema = driftSchema.extend({
  /** Missing if it was dropped, because stored plans are limited, or if the worker has another version. */
  plan: planRecordSchema.optional(),
});

/** Query of `GET /v1/drift`; filters are combined with AND. */
export const driftQuerySchema = z.strictObject({
  cluster: text.default("default"),
  controller: text.optional(),
  /** `_` for cluster-scoped objects. */
  namespace: text.optional(),
});

export type Drift = z.infer<typeof driftSchema>;
export type DriftDetail = z.infer<typeof driftDetailSchema>;
export type DriftList = z.infer<typeof driftListSchema>;
export type DriftQuery = z.output<typeof driftQuerySchema>;
