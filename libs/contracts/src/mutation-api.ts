import { CHANGE_KINDS, MUTATION_STATES } from "@konverge/core";
import { z } from "zod";
import { duration } from "./duration.ts";
import { changeSchema, comparedValue, fieldPath, jsonObject } from "./mutation-fields.ts";
import { rejectedItemSchema } from "./problem.ts";
import { oneOf, text, wholeNumber } from "./query-fields.ts";
import { objectName, requestedClassSchema } from "./reconcile-api.ts";

/** Largest mutation, as JSON. */
const MAX_MUTATION_BYTES = 256 * 1_024;
const MAX_CHANGES = 64;
const MAX_FIELDS = 32;
const MAX_DEADLINE_MS = 7 * 86_400_000;

const kind = z
  .string("is required, such as Deployment")
  .regex(/^[A-Za-z][A-Za-z0-9]{0,62}$/, "must be a kind, such as Deployment");
const BAD_API_VERSION = "must be a version with its group, such as apps/v1 or v1";
const apiVersion = z
  .string(BAD_API_VERSION)
  .regex(/^([a-z0-9][-a-z0-9.]{0,252}\/)?[a-z0-9]{1,63}$/, BAD_API_VERSION);
const BAD_ID = "must be 1 to 100 letters, digits, dots, colons, dashes or underscores";
const BAD_UID = "must be the metadata.uid of the object";
const BAD_CHANGES = `must have 1 to ${MAX_CHANGES} changes`;
const BAD_FIELDS = `must have 1 to ${MAX_FIELDS} conditions`;
const BAD_BOOLEAN = "must be true or false";

const fieldCondition = z.union(
  [
    z.strictObject({ path: fieldPath, exists: z.boolean(BAD_BOOLEAN) }),
    z.strictObject({ path: fieldPath, value: comparedValue }),
  ],
  "must have a path and either value or exists",
);

/** Conditions that must hold when the mutation is applied, after the earlier mutations of its object. */
const preconditions = z
  .strictObject({
    exists: z.boolean(BAD_BOOLEAN).optional(),
    /** `metadata.generation` of the object. */
    generation: z.number().int().min(1, "must be a generation, from 1").optional(),
    /** Fields with the value that they must have, or with `exists`. */
    fields: z
      .array(fieldCondition, BAD_FIELDS)
      .min(1, BAD_FIELDS)
      .max(MAX_FIELDS, BAD_FIELDS)
      .optional(),
  })
  .superRefine(({ exists, generation, fields = [] }, context) => {
    const issue = (path: (string | number)[], message: string) =>
      context.addIssue({ code: "custom", path, message });
    if (exists === false && generation !== undefined) {
      issue(["generation"], "cannot be combined with exists: false");
    }
    if (exists === false && fields.length > 0) {
      issue(["fields"], "cannot be combined with exists: false");
    }
    const seen = new Set<string>();
    for (const [at, { path }] of fields.entries()) {
      if (seen.has(path))
        issue(["fields", at, "path"], `must not repeat ${path}, which has a condition already`);
      seen.add(path);
    }
  });

const mutationFields = {
  cluster: text.default("default"),
  kind,
  /** Needed only if two open kinds have the same name. */
  apiVersion: apiVersion.optional(),
  /** Omitted for cluster-scoped objects. */
  namespace: objectName.optional(),
  name: objectName,
  /** Made in order, all or none. */
  changes: z.array(changeSchema, BAD_CHANGES).min(1, BAD_CHANGES).max(MAX_CHANGES, BAD_CHANGES),
  subresource: z.enum(["status", "scale"], "must be status or scale").optional(),
  /** An object of this name with another uid ends the mutation as `replaced`. */
  uid: z.string(BAD_UID).min(1, BAD_UID).max(128, BAD_UID).optional(),
  if: preconditions.optional(),
  /** Creates a missing object: `true`, or its content. The changes are then made to it. */
  create: z.union([z.literal(true), jsonObject], "must be true or a JSON object").optional(),
  /** The mutation expires if it is not applied in this time, such as 30s. Default: unlimited. */
  deadline: duration
    .refine((ms) => ms >= 1_000 && ms <= MAX_DEADLINE_MS, "must be from 1s to 7d")
    .optional(),
  /** The urgency. Default: `interactive`; in a batch, `event`. Mutations of one object keep their order. */
  class: requestedClassSchema.optional(),
  /** Submitting the same ID again returns the existing mutation. Default: a UUID. */
  id: z
    .string(BAD_ID)
    .regex(/^[\w.:-]{1,100}$/, BAD_ID)
    .optional(),
};

/** Body of `POST /v1/mutations`. */
export const submitMutationSchema = z.strictObject(mutationFields).superRefine((given, context) => {
  const issue = (path: string, message: string) =>
    context.addIssue({ code: "custom", path: [path], message });
  const { changes, create, subresource, uid } = given;
  const isApply = changes.some((change) => change.kind === "apply");
  if (isApply && changes.length > 1) issue("changes", "apply must be the only change");
  if (isApply && create !== undefined) {
    issue("create", "is not needed with apply, which creates a missing object; remove it");
  }
  if (create !== undefined && subresource !== undefined) {
    issue("create", "cannot be combined with subresource");
  }
  if (create !== undefined && uid !== undefined) {
    issue("create", "cannot be combined with uid, which an object has only after its creation");
  }
  if (create !== undefined && given.if?.exists === true) {
    issue("create", "cannot be combined with exists: true");
  }
  if (given.if?.exists === false && create === undefined && !isApply) {
    issue("if", "exists: false requires create, because a missing object cannot be changed");
  }
  if (JSON.stringify(given).length > MAX_MUTATION_BYTES) {
    issue("changes", `the mutation must have at most ${MAX_MUTATION_BYTES} bytes as JSON`);
  }
});

const BAD_ITEMS = "must have 1 to 1000 items";

/** Body of `POST /v1/mutations/batch`. */
export const submitMutationsSchema = z.strictObject({
  items: z.array(submitMutationSchema, BAD_ITEMS).min(1, BAD_ITEMS).max(1_000, BAD_ITEMS),
});

const resultFields = {
  /** `<cluster>/<id>`. */
  id: z.string(),
  state: z.enum(MUTATION_STATES),
  /** Version of the object with the change, if the state is `applied` or `unchanged`. */
  resourceVersion: z.string().optional(),
  /** Why the mutation has not been applied. */
  error: z.object({ code: z.string(), message: z.string() }).optional(),
};

/** A mutation. Response of `POST /v1/mutations`, `GET` and `DELETE /v1/mutations/{id}`. */
export const mutationSchema = z.object({
  ...resultFields,
  cluster: z.string(),
  kind: z.string(),
  apiVersion: z.string(),
  namespace: z.string().optional(),
  name: z.string(),
  subresource: z.enum(["status", "scale"]).optional(),
  uid: z.string().optional(),
  /** As submitted. Values of sensitive kinds are omitted. */
  changes: z.array(z.object({ kind: z.enum(CHANGE_KINDS) }).loose()),
  if: z
    .object({
      exists: z.boolean().optional(),
      generation: z.number().optional(),
      fields: z.array(z.object({ path: z.string() }).loose()).optional(),
    })
    .optional(),
  /** True if a missing object is created. */
  create: z.boolean().optional(),
  class: requestedClassSchema.optional(),
  /** The name of the token. */
  by: z.string().optional(),
  createdAt: z.string(),
  /** The mutation expires if it has not been applied by then. */
  expiresAt: z.string().optional(),
  endedAt: z.string().optional(),
});

/** Response of `POST /v1/mutations/batch`: one result per item, in order. */
export const mutationResultsSchema = z.object({
  accepted: z.number(),
  items: z.array(z.union([z.object(resultFields), rejectedItemSchema])),
});

const BAD_CURSOR = 'must be the "next" of an earlier response';

/** Query of `GET /v1/mutations`. Filters are combined with AND. */
export const mutationQuerySchema = z
  .strictObject({
    cluster: text.default("default"),
    kind: kind.optional(),
    apiVersion: apiVersion.optional(),
    namespace: text.optional(),
    /** With `kind`: the mutations of one object. */
    name: text.optional(),
    state: z.enum(MUTATION_STATES, oneOf(MUTATION_STATES)).optional(),
    limit: wholeNumber(500).default(100),
    /** `next` of an earlier response. */
    cursor: z
      .string(BAD_CURSOR)
      .regex(/^\d{1,16}$/, BAD_CURSOR)
      .optional(),
  })
  .superRefine(({ kind: given, name, apiVersion: version }, context) => {
    const issue = (path: string, message: string) =>
      context.addIssue({ code: "custom", path: [path], message });
    if (name !== undefined && given === undefined) issue("kind", "is required with name");
    if (version !== undefined && given === undefined) issue("kind", "is required with apiVersion");
  });

/** Response of `GET /v1/mutations`, newest first. A short or empty page can still have a `next`. */
export const mutationListSchema = z.object({
  items: z.array(mutationSchema),
  next: z.string().optional(),
});

/** Response of `GET /v1/mutation-kinds`: the kinds that the configuration of the workers opens. */
export const mutationKindListSchema = z.object({
  items: z.array(
    z.object({
      cluster: z.string(),
      kind: z.string(),
      apiVersion: z.string(),
      /** Plural name. */
      resource: z.string(),
      scope: z.enum(["Namespaced", "Cluster"]),
      sensitive: z.boolean().optional(),
      /** Open fields, each with all fields below it. Default: all. */
      paths: z.array(z.string()).optional(),
      /** The role that a token must have. */
      role: z.enum(["operator", "admin"]),
    }),
  ),
});

export type SubmitMutation = z.output<typeof submitMutationSchema>;
export type MutationDetail = z.infer<typeof mutationSchema>;
export type MutationResults = z.infer<typeof mutationResultsSchema>;
export type MutationListQuery = z.output<typeof mutationQuerySchema>;
export type MutationList = z.infer<typeof mutationListSchema>;
export type MutationKindList = z.infer<typeof mutationKindListSchema>;
export type NewMutation = z.input<typeof submitMutationSchema>;
