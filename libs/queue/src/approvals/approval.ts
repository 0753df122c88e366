import { defined, KonvergeError } from "@konverge/core";

/** The roles that may approve. */
export const APPROVER_ROLES = ["operator", "admin"] as const;
export type ApproverRole = (typeof APPROVER_ROLES)[number];

/**
 * `approved`: the next attempt applies the plan. `applying`: an attempt has begun to write. If it does not reach its end, the
 * key is planned and approved again.
 */
export const APPROVAL_STATES = ["awaiting", "approved", "rejected", "applying"] as const;
type ApprovalState = (typeof APPROVAL_STATES)[number];

interface GivenApproval {
  readonly by: string;
  readonly at: string;
  /** The role of the user at that time. Missing in approvals of older versions. */
  readonly role?: string;
}

/** A plan that waits for users, before the attempt that makes its changes. Times are ISO 8601. */
export interface Approval {
  /** The key of the object, in its canonical text form. */
  readonly key: string;
  readonly controller: string;
  readonly state: ApprovalState;
  /** The hash of the plan: an approval is about exactly this one. */
  readonly hash: string;
  readonly summary: Readonly<Record<string, number>>;
  /** Number of different users that must approve it. A rule that requires fewer does not change a plan that waits. */
  readonly by: number;
  /** The minimum role of these users, kept like `by`. */
  readonly role: ApproverRole;
  /** The users whose requests no attempt has applied yet. They may not approve it. */
  readonly requesters: readonly string[];
  readonly approvals: readonly GivenApproval[];
  readonly rejected?: { readonly by: string; readonly at: string; readonly reason: string };
  /** The attempt that applies the plan. */
  readonly attempt?: string;
  /** Epoch of the newest attempt that has changed it. Earlier attempts may not change it. */
  readonly epoch?: number;
  /** The key of the digests in the hash. */
  readonly salt?: string;
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
  Pick<Partial<Approval>, "uid" | "version" | "epoch" | "salt">;

/**
 * Returns the approval of a plan. Decisions about an equal plan are kept; those about another one are dropped.
 * `isRequested`: a user has requested the attempt that makes the proposal.
 */
export function proposed(
  current: Approval | undefined,
  proposal: Proposal,
  { isRequested = false }: { readonly isRequested?: boolean } = {},
): Approval {
  const requesters = [...new Set([...(current?.requesters ?? []), ...proposal.requesters])];
  const isSame =
    current !== undefined && current.hash === proposal.hash && current.state !== "applying";
  if (!isSame) {
    const replaced = current === undefined ? 0 : current.replaced + 1;
    return { ...proposal, requesters, state: "awaiting", approvals: [], replaced };
  }
  const by = Math.max(current.by, proposal.by);
  const role = rankOf(current.role) > rankOf(proposal.role) ? current.role : proposal.role;
  const next = { ...current, by, role, requesters, ...defined({ epoch: proposal.epoch }) };
  // A user who requests a rejected plan asks for another decision.
  if (current.state === "rejected" && isRequested) {
    const { rejected: _dropped, ...rest } = next;
    return { ...rest, state: "awaiting", approvals: [] };
  }
  return counted(next);
}

/** Returns the approval with further users who have requested the object. Their own approvals no longer count. */
export function requestedBy(approval: Approval, users: Iterable<string>): Approval {
  const requesters = [...new Set([...approval.requesters, ...users])];
  return counted({ ...approval, requesters });
}

export interface Decision {
  readonly by: string;
  /** The role of the user. */
  readonly role: string;
  /** The hash of the plan that the user has seen. */
  readonly hash: string;
  readonly at: string;
}

/** @throws KonvergeError `approval_stale`, `forbidden` */
export function approved(
  current: Approval | undefined,
  { by, role, hash, at }: Decision,
): Approval {
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
  const isGiven = (each: GivenApproval) => each.by === by && rankOf(each.role) >= rankOf(role);
  if (approval.approvals.some(isGiven)) return approval;
  const others = approval.approvals.filter((each) => each.by !== by);
  return counted({ ...approval, approvals: [...others, { by, at, role }] });
}

/** @throws KonvergeError `approval_stale` */
export function rejected(
  current: Approval | undefined,
  { by, hash, at, reason }: Omit<Decision, "role"> & { readonly reason: string },
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
  if (current?.hash !== hash) return undefined;
  if (current.state === "applying") return current.attempt === attempt ? current : undefined;
  return current.state === "approved" ? { ...current, state: "applying", attempt } : undefined;
}

/** @throws KonvergeError `approval_stale` for an attempt that is older than one that has changed the approval */
export function demandNewest(current: Approval | undefined, epoch: number): void {
  if (current?.epoch === undefined || current.epoch <= epoch) return;
  throw stale(`a newer attempt of ${current.key} has changed its approval`);
}

/** Removes approvals of users who have since requested the object, or whose role does not suffice. */
function counted(approval: Approval): Approval {
  if (approval.state !== "awaiting" && approval.state !== "approved") return approval;
  const approvals = approval.approvals.filter(
    ({ by, role }) => !approval.requesters.includes(by) && rankOf(role) >= rankOf(approval.role),
  );
  const state = approvals.length >= approval.by ? "approved" : "awaiting";
  return { ...approval, approvals, state };
}

/** Returns the rank of a role in `APPROVER_ROLES`. An unknown or missing role has the lowest rank. */
function rankOf(role: string | undefined): number {
  return Math.max(0, APPROVER_ROLES.indexOf(role as ApproverRole));
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
