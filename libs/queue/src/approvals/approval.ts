import { KonvergeError } from "@konverge/core";

/** The roles that may approve. */
export const APPROVER_ROLES = ["operator", "admin"] as const;
export type ApproverRole = (typeof APPROVER_ROLES)[number];

/**
 * `approved`: the next attempt applies the plan. `applying`: an attempt has begun to write. If it does not reach its end, the
 * key is planned and approved again.
 */
export const APPROVAL_STATES = ["awaiting", "approved", "rejected", "applying"] as const;
type ApprovalState = (typeof APPROVAL_STATES)[number];

/** A plan that waits for users, before the attempt that makes its changes. Times are ISO 8601. */
export interface Approval {
  /** The key of the object, in its canonical text form. */
  readonly key: string;
  readonly controller: string;
  readonly state: ApprovalState;
  /** The hash of the plan: an approval is about exactly this one. */
  readonly hash: string;
  readonly summary: Readonly<Record<string, number>>;
  /** Number of different users that must approve it. */
  readonly by: number;
  readonly role: ApproverRole;
  /** The users who requested the attempt. They may not approve it. */
  readonly requesters: readonly string[];
  readonly approvals: readonly { readonly by: string; readonly at: string }[];
  readonly rejected?: { readonly by: string; readonly at: string; readonly reason: string };
  /** The attempt that applies the plan. */
  readonly attempt?: string;
  /** The time of the plan. */
  readonly since: string;
  /** Plans of this key that were replaced before they were applied. */
  readonly replaced: number;
  /** The reconciled object that the plan has read. */
  readonly uid?: string;
  readonly version?: string;
}

/** A plan for which the rule of its controller demands an approval. */
export type Proposal = Pick<
  Approval,
  "key" | "controller" | "hash" | "summary" | "by" | "role" | "requesters" | "since"
> &
  Pick<Partial<Approval>, "uid" | "version">;

/** Returns the approval of a plan. Decisions about an equal plan are kept; those about another one are dropped. */
export function proposed(current: Approval | undefined, proposal: Proposal): Approval {
  const isSame =
    current !== undefined && current.hash === proposal.hash && current.state !== "applying";
  if (!isSame) {
    const replaced = current === undefined ? 0 : current.replaced + 1;
    return { ...proposal, state: "awaiting", approvals: [], replaced };
  }
  const { by, role } = proposal;
  const requesters = [...new Set([...current.requesters, ...proposal.requesters])];
  // A user who requests a rejected plan asks for another decision.
  if (current.state === "rejected" && proposal.requesters.length > 0) {
    const { rejected: _dropped, ...rest } = current;
    return { ...rest, by, role, requesters, state: "awaiting", approvals: [] };
  }
  return counted({ ...current, by, role, requesters });
}

export interface Decision {
  readonly by: string;
  /** The hash of the plan that the user has seen. */
  readonly hash: string;
  readonly at: string;
}

/** @throws KonvergeError `approval_stale`, `forbidden` */
export function approved(current: Approval | undefined, { by, hash, at }: Decision): Approval {
  const approval = demandPlan(current, hash);
  if (approval.state === "rejected") {
    const { by: rejecter = "" } = approval.rejected ?? {};
    throw stale(`the plan was rejected by ${rejecter}; request the object to plan it again`);
  }
  if (approval.requesters.includes(by)) {
    throw new KonvergeError(
      "forbidden",
      `${by} has requested the change; another user must approve it`,
    );
  }
  if (approval.approvals.some((each) => each.by === by)) return approval;
  return counted({ ...approval, approvals: [...approval.approvals, { by, at }] });
}

/** @throws KonvergeError `approval_stale` */
export function rejected(
  current: Approval | undefined,
  { by, hash, at, reason }: Decision & { readonly reason: string },
): Approval {
  const approval = demandPlan(current, hash);
  if (approval.state === "rejected") return approval;
  return { ...approval, state: "rejected", approvals: [], rejected: { by, at, reason } };
}

/** Returns the approval while `attempt` makes its writes; undefined if the plan is no longer approved. */
export function applying(
  current: Approval | undefined,
  { hash, attempt }: { readonly hash: string; readonly attempt: string },
): Approval | undefined {
  if (current?.state !== "approved" || current.hash !== hash) return undefined;
  return { ...current, state: "applying", attempt };
}

/** Users who have requested the plan meanwhile no longer count. */
function counted(approval: Approval): Approval {
  if (approval.state !== "awaiting" && approval.state !== "approved") return approval;
  const approvals = approval.approvals.filter(({ by }) => !approval.requesters.includes(by));
  const state = approvals.length >= approval.by ? "approved" : "awaiting";
  return { ...approval, approvals, state };
}

function demandPlan(current: Approval | undefined, hash: string): Approval {
  if (current === undefined || current.state === "applying") {
    throw stale("no plan of the object waits for an approval; it may have been applied");
  }
  if (current.hash !== hash) {
    throw stale(
      `the plan ${hash.slice(0, 12)} has been replaced by ${current.hash.slice(0, 12)}, because the objects have changed; decide about the new plan`,
    );
  }
  return current;
}

function stale(detail: string): KonvergeError {
  return new KonvergeError("approval_stale", detail);
}
