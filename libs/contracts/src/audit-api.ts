import { z } from "zod";

/** What can be changed through the API and the command line. */
export const AUDIT_ACTIONS = [
  "reconcile",
  "cancel",
  "pause",
  "resume",
  "release",
  "guard.isolate",
  "guard.reset",
  "guard.rate",
  "run.start",
  "run.signal",
  "run.cancel",
  "run.retry",
  "token.create",
  "token.revoke",
] as const;

/** One change: who, what, where, how many. */
export const auditEntrySchema = z.object({
  /** Grows with time; also the cursor. */
  id: z.string(),
  at: z.string(),
  /** The token's name, else who the order says gave it. */
  by: z.string(),
  action: z.enum(AUDIT_ACTIONS),
  cluster: z.string().optional(),
  controller: z.string().optional(),
  /** `_` for cluster-scoped objects. */
  namespace: z.string().optional(),
  name: z.string().optional(),
  /** What else it was narrowed to, such as a part of names, a request's id or a token's. */
  filter: z.string().optional(),
  reason: z.string().optional(),
  /** Of keys or requests. Requests of one second, author and place are one entry. */
  count: z.number().optional(),
});

const sayLimit = "write a whole number from 1 to 1000";
const text = z.string().min(1).max(253);

/** Query of `GET /v1/audit`; all that is given must hold. */
export const auditQuerySchema = z.strictObject({
  cluster: text.optional(),
  controller: text.optional(),
  namespace: text.optional(),
  by: text.optional(),
  action: z.enum(AUDIT_ACTIONS, `write one of ${AUDIT_ACTIONS.join(", ")}`).optional(),
  limit: z.coerce.number(sayLimit).int(sayLimit).min(1, sayLimit).max(1_000, sayLimit).default(100),
  /** `next` of an earlier answer. */
  cursor: text.optional(),
});

/** Answer of the same, newest first. A page may be short and still have a `next`. */
export const auditPageSchema = z.object({
  items: z.array(auditEntrySchema),
  next: z.string().optional(),
});

export type AuditEntry = z.infer<typeof auditEntrySchema>;
export type AuditQuery = z.output<typeof auditQuerySchema>;
export type AuditPage = z.infer<typeof auditPageSchema>;
