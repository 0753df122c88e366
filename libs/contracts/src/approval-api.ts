import { planRecordSchema } from "@konverge/records";
import { z } from "zod";
import { text } from "./query-fields.ts";
import { operatorActionSchema } from "./queue-api.ts";

/**
 * `approved`: the next attempt applies the plan. `applying`: an attempt has begun to write; if it does not reach its end, the key
 * is planned and approved again.
 */
const APPROVAL_STATES = ["awaiting", "approved", "rejected", "applying"] as const;

/** A plan that waits for users. Times are ISO 8601. */
export const approvalSchema = z.object({
  key: z.string(),
  cluster: z.string(),
  controller: z.string(),
  namespace: z.string().optional(),
  name: z.string(),
  state: z.enum(APPROVAL_STATES),
  /** Identifies exactly this plan. */
  hash: z.string(),
  summary: planRecordSchema.shape.summary,
  /** Number of different users who must approve. */
  by: z.number().int(),
  /** The minimum role of the users who approve. */
  role: z.enum(["operator", "admin"]),
  /** Users who requested the attempt, and may not approve it. */
  requesters: z.array(z.string()),
  approvals: z.array(z.object({ by: z.string(), at: z.string() })),
  rejected: z.object({ by: z.string(), at: z.string(), reason: z.string() }).optional(),
  /** The time of the plan. */
  since: z.string(),
  /** Earlier plans of this key that were replaced, because the objects changed. */
  replaced: z.number().int(),
});

/** Response of `GET /v1/approvals/{cluster}/{controller}/{namespace}/{name}`. */
export const approvalDetailSchema = approvalSchema.extend({
  /** Missing if the worker has another version. */
  plan: planRecordSchema.optional(),
});

/** Query of `GET /v1/approvals`; filters are combined with AND. */
export const approvalQuerySchema = z.strictObject({
  cluster: text.default("default"),
  controller: text.optional(),
  /** `_` for cluster-scoped objects. */
  namespace: text.optional(),
});

/** Response of `GET /v1/approvals`: oldest first, at most 1,000. */
export const approvalListSchema = z.object({
  items: z.array(approvalSchema),
  /** Number of plans that are not listed. */
  more: z.number().int().optional(),
});

const BAD_HASH = "must be the hash of the plan, or at least its first 12 characters";

/** Body of `POST /v1/approvals/.../approve` and `/reject`. */
export const approvalDecisionSchema = z.strictObject({
  hash: z.string(BAD_HASH).regex(/^[0-9a-f]{12,64}$/, BAD_HASH),
  ...operatorActionSchema.shape,
});

export type Approval = z.infer<typeof approvalSchema>;
export type ApprovalDetail = z.infer<typeof approvalDetailSchema>;
export type ApprovalList = z.infer<typeof approvalListSchema>;
export type ApprovalQuery = z.output<typeof approvalQuerySchema>;
export type ApprovalDecision = z.output<typeof approvalDecisionSchema>;
