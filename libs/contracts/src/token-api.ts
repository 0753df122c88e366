import { z } from "zod";
import { oneOf, text } from "./query-fields.ts";
import { requestedClassSchema } from "./reconcile-api.ts";

/** The roles of tokens. Each role includes the permissions of the roles before it. */
export const ROLES = ["viewer", "operator", "admin"] as const;
export type Role = (typeof ROLES)[number];

/**
 * `kubernetes` is a token of the cluster; `oidc` is the session of a user of the OIDC provider; `local` is a loopback
 * request without a token; `process` is the command line without a server.
 */
export const AUTHENTICATIONS = [
  "token",
  "session",
  "kubernetes",
  "oidc",
  "local",
  "process",
] as const;

const BAD_NAME = "must be 1 to 100 letters, digits, dots, dashes or underscores";
const names = z
  .array(text)
  .min(1, "must not be empty; omit the field to allow all")
  .max(100, "must have at most 100 entries");

const BAD_KIND = "must be a kind or a field of one, such as ConfigMap or Deployment:/spec/replicas";
/** The scope of a token. An omitted field is unrestricted; the namespace `_` stands for cluster-scoped objects. */
export const scopeSchema = z.strictObject({
  clusters: names.optional(),
  controllers: names.optional(),
  namespaces: names.optional(),
  /** The kinds that mutations may change, such as `ConfigMap`, or their fields, such as `Deployment:/spec/replicas`. */
  kinds: z
    .array(z.string(BAD_KIND).regex(/^[A-Za-z][A-Za-z0-9]{0,62}(:(\/([^~/]|~[01])*)+)?$/, BAD_KIND))
    .min(1, "must not be empty; omit the field to allow all")
    .max(100, "must have at most 100 entries")
    .optional(),
});

const classes = z
  .array(requestedClassSchema)
  .min(1, "must not be empty; omit the field to allow all");

/** The properties of a new token. */
export const newTokenSchema = z.strictObject({
  name: z.string(BAD_NAME).regex(/^[\w.-]{1,100}$/, BAD_NAME),
  role: z.enum(ROLES, oneOf(ROLES)),
  scope: scopeSchema.default({}),
  /** The classes of requests that the token may make. Default: all. */
  classes: classes.optional(),
  /** Lifetime in ms. Default: unlimited. */
  ttlMs: z.number().int().min(1_000, "must be at least 1s").optional(),
});

/** The metadata of a token, without the token and its hash. */
export const tokenViewSchema = z.object({
  id: z.string(),
  name: z.string(),
  role: z.enum(ROLES),
  scope: scopeSchema,
  classes: classes.optional(),
  createdAt: z.string(),
  createdBy: z.string(),
  expiresAt: z.string().optional(),
  /** Accurate to the minute. */
  lastUsedAt: z.string().optional(),
});

/** Body of `POST /v1/session`. */
export const sessionSchema = z.strictObject({
  token: z.string("is missing").min(1, "is missing").max(500, "is not a token"),
});

/** Response of `POST /v1/session` and `GET /v1/whoami`. */
export const whoamiSchema = z.object({
  name: z.string(),
  role: z.enum(ROLES),
  scope: scopeSchema,
  /** The classes of requests that the caller may make. Omitted: all. */
  classes: classes.optional(),
  via: z.enum(AUTHENTICATIONS),
});

export type Scope = z.output<typeof scopeSchema>;
export type NewToken = z.output<typeof newTokenSchema>;
export type TokenView = z.infer<typeof tokenViewSchema>;
export type Whoami = z.infer<typeof whoamiSchema>;
