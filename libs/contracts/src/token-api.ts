import { z } from "zod";

/** What a token may do; each may do what those before it may. */
export const ROLES = ["viewer", "operator", "admin"] as const;
export type Role = (typeof ROLES)[number];

const sayName = "write a name of 1 to 100 letters, digits, dots, dashes or underscores";
const sayPart = "write a name of 1 to 253 characters";
const names = z
  .array(z.string(sayPart).min(1, sayPart).max(253, sayPart))
  .min(1, "name at least one, or leave it out for all")
  .max(100, "name at most 100");

/** What a token reaches. What is left out is not restricted; `_` among the namespaces stands for cluster-scoped objects. */
export const scopeSchema = z.strictObject({
  clusters: names.optional(),
  controllers: names.optional(),
  namespaces: names.optional(),
});

/** What a new token is to be. */
export const newTokenSchema = z.strictObject({
  name: z.string(sayName).regex(/^[\w.-]{1,100}$/, sayName),
  role: z.enum(ROLES, `write one of ${ROLES.join(", ")}`),
  scope: scopeSchema.default({}),
  /** Lifetime in ms; left out, until it is revoked. */
  ttlMs: z.number().int().min(1_000, "write at least 1s").optional(),
});

/** A token as it may be shown: never itself, nor its hash. */
export const tokenViewSchema = z.object({
  id: z.string(),
  name: z.string(),
  role: z.enum(ROLES),
  scope: scopeSchema,
  createdAt: z.string(),
  createdBy: z.string(),
  expiresAt: z.string().optional(),
  /** To the minute. */
  lastUsedAt: z.string().optional(),
});

/** Body of `POST /v1/session`: a browser logs in with a token. */
export const sessionSchema = z.strictObject({
  token: z.string("write the token").min(1, "write the token").max(500, "this is no token"),
});

/** Answer of `POST /v1/session` and `GET /v1/whoami`. */
export const whoamiSchema = z.object({
  name: z.string(),
  role: z.enum(ROLES),
  scope: scopeSchema,
  /** `local` needed no token, since it came over loopback; `process` is the command line without a server. */
  via: z.enum(["token", "session", "local", "process"]),
});

export type Scope = z.output<typeof scopeSchema>;
export type NewToken = z.output<typeof newTokenSchema>;
export type TokenView = z.infer<typeof tokenViewSchema>;
export type Whoami = z.infer<typeof whoamiSchema>;
