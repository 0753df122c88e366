import { AUDIT_ACTIONS } from "@konverge/core";
import { z } from "zod";
import { oneOf, streamCursor, text, wholeNumber } from "./query-fields.ts";
import { AUTHENTICATIONS } from "./token-api.ts";

/** One change made through the API or the command line. */
export const auditEntrySchema = z.object({
  /** Increases with time; also the cursor. */
  id: z.string(),
  at: z.string(),
  /** The name of the token, or without a token the author in the request. */
  by: z.string(),
  /** The authentication of the author; missing for a change without the HTTP API and its client. */
  via: z.enum(AUTHENTICATIONS).optional(),
  action: z.enum(AUDIT_ACTIONS),
  cluster: z.string().optional(),
  controller: z.string().optional(),
  /** `_` for cluster-scoped objects. */
  namespace: z.string().optional(),
  name: z.string().optional(),
  /** Further selectors, such as a substring of names, a request ID or a token ID. */
  filter: z.string().optional(),
  reason: z.string().optional(),
  /** The number of keys or requests. Requests of one author, place and second share an entry. */
  count: z.number().optional(),
});

/** Query of `GET /v1/audit`; filters are combined with AND. */
export const auditQuerySchema = z.strictObject({
  cluster: text.optional(),
  controller: text.optional(),
  namespace: text.optional(),
  by: text.optional(),
  action: z.enum(AUDIT_ACTIONS, oneOf(AUDIT_ACTIONS)).optional(),
  limit: wholeNumber(1_000).default(100),
  /** `next` of an earlier response. */
  cursor: streamCursor.optional(),
});

/** Response of `GET /v1/audit`, newest first. A short page can still have a `next`. */
export const auditPageSchema = z.object({
  items: z.array(auditEntrySchema),
  next: z.string().optional(),
});

export type AuditEntry = z.infer<typeof auditEntrySchema>;
export type AuditQuery = z.output<typeof auditQuerySchema>;
export type AuditPage = z.infer<typeof auditPageSchema>;
