import type { PlanRecord } from "@konverge/records";

/** The roles of tokens that may approve a plan. */
const APPROVER_ROLES = ["operator", "admin"] as const;

/** The changes of an attempt, before it makes them. */
export interface ApprovalPlan {
  readonly creates: number;
  readonly updates: number;
  /** Deleted objects, including those that are created again. */
  readonly deletes: number;
  /** All written objects, without values of sensitive kinds. */
  readonly changes: PlanRecord["changes"];
  /** The names of calls of `ctx.external`. */
  readonly externals: readonly string[];
  /** Workflow runs that would be started or found. */
  readonly runs: PlanRecord["runs"];
  /** Facts that the plan cannot determine. */
  readonly gaps: PlanRecord["gaps"];
}

/** Selects the plans that users must approve before an attempt makes their changes (docs/plan.md). */
export interface ApprovalRule {
  /** Returns true for a plan that needs an approval. */
  readonly when: (plan: ApprovalPlan) => boolean;
  /** The minimum role of the users who approve. Default `operator`. */
  readonly role?: (typeof APPROVER_ROLES)[number];
  /** Number of different users who must approve. Default 1. Users who requested the attempt do not count. */
  readonly by?: number;
}

const ROLE_LIST = APPROVER_ROLES.join(" or ");

/** Returns the problem of a rule. The value may come from JavaScript. */
export function findApprovalIssue(value: unknown): string | undefined {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    return "must be an object such as { when: (plan) => plan.deletes > 0 }";
  }
  const { when, role, by, ...unknown } = value as Record<string, unknown>;
  const [option] = Object.keys(unknown);
  if (option !== undefined) return `${option} is unknown; valid fields: when, role, by`;
  if (typeof when !== "function") return "when must be a function (plan) => boolean";
  const roles: readonly unknown[] = APPROVER_ROLES;
  if (role !== undefined && !roles.includes(role)) {
    return `role must be ${ROLE_LIST} (got ${String(role)})`;
  }
  return by === undefined || (Number.isInteger(by) && Number(by) >= 1 && Number(by) <= 10)
    ? undefined
    : `by must be an integer from 1 to 10 (got ${String(by)})`;
}
