import { z } from "zod";

const link = z.object({
  apiVersion: z.string(),
  kind: z.string(),
  namespace: z.string().optional(),
  name: z.string(),
  /** True for the owner that controls the object. */
  isController: z.boolean().optional(),
  /** Of a child, by kstatus: `current`, `inProgress`, `failed`, `terminating`. */
  status: z.string().optional(),
  /** The key of the object, if a controller of the cluster reconciles its kind. */
  key: z.string().optional(),
});

/** Response of `GET /v1/objects/{cluster}/{controller}/{namespace}/{name}/live`. */
export const liveObjectSchema = z.discriminatedUnion("kind", [
  z.object({
    kind: z.literal("found"),
    readAt: z.string(),
    /** True if the kind is sensitive: only the identity of the object has values. */
    isRedacted: z.boolean(),
    /** Without managed fields and the copy that kubectl keeps; large values are truncated. */
    object: z.record(z.string(), z.unknown()),
    /** The owners of fields, by path. */
    fieldOwners: z.array(
      z.object({
        path: z.string(),
        manager: z.string(),
        operation: z.string(),
        subresource: z.string().optional(),
        /** Last write of the manager. */
        at: z.string().optional(),
      }),
    ),
    owners: z.array(link),
    /** Objects of the kinds that the controller owns, at most 100, in the scope of the caller. */
    children: z.array(link),
    moreChildren: z.number(),
    /** Kubernetes events about the object, latest first, at most 50. */
    events: z.array(
      z.object({
        type: z.string(),
        reason: z.string(),
        message: z.string(),
        count: z.number(),
        source: z.string(),
        lastAt: z.string().optional(),
      }),
    ),
    /** The error of reading the events. */
    eventsError: z.string().optional(),
  }),
  /** The cluster has no such object, or it is outside of the namespaces and selectors of the controller. */
  z.object({ kind: z.literal("missing"), readAt: z.string() }),
  /** No worker could read the object. */
  z.object({ kind: z.literal("unavailable"), code: z.string(), message: z.string() }),
]);

export type LiveObject = z.infer<typeof liveObjectSchema>;
