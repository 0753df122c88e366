import type {
  Approval as ApprovalView,
  ApprovalDecision,
  ApprovalDetail,
  ApprovalList,
  ApprovalQuery,
} from "@konverge/contracts";
import {
  defined,
  formatKey,
  KonvergeError,
  namespaceSegment,
  parseKey,
  type ObjectKey,
} from "@konverge/core";
import { approved, rejected, requestedBy, type Approval } from "@konverge/queue";
import { planRecordSchema } from "@konverge/records";
import { allows, covers, demandSome, type Caller } from "../access/caller.ts";
import type { RouteInput } from "../http/route.ts";
import type { AuditNote } from "../audit/audit-log.ts";
import type { QueueAccess } from "../queues/queue-access.ts";

/** Plans in one response. */
const MOST_LISTED = 1_000;

export async function listApprovals(
  access: QueueAccess,
  { cluster, controller, namespace }: ApprovalQuery,
  caller: Caller,
): Promise<ApprovalList> {
  demandSome(caller, { cluster, controller, namespace });
  const views = (await access.approvals(cluster).list()).map(viewOf).filter((view) => {
    const place = placeOf(view);
    return (
      (controller === undefined || view.controller === controller) &&
      (namespace === undefined || place.namespace === namespace) &&
      covers(caller.scope, place)
    );
  });
  const items = views.toSorted(byAge);
  const more = items.length - MOST_LISTED;
  return { items: items.slice(0, MOST_LISTED), ...(more > 0 ? { more } : {}) };
}

/** Oldest first. Equal times are ordered by key, because Redis returns the entries in any order. */
function byAge(one: ApprovalView, other: ApprovalView): number {
  const [left, right] = one.since === other.since ? [one.key, other.key] : [one.since, other.since];
  if (left === right) return 0;
  return left < right ? -1 : 1;
}

/** @throws KonvergeError `not_found` */
export async function readApproval(access: QueueAccess, key: ObjectKey): Promise<ApprovalDetail> {
  const text = formatKey(key);
  const store = access.approvals(key.cluster);
  const [approval, record] = await Promise.all([store.read(text), store.readPlan(text)]);
  if (approval === undefined) {
    throw new KonvergeError("not_found", `no plan of ${text} waits for an approval`);
  }
  const parsed = record === undefined ? undefined : planRecordSchema.safeParse(JSON.parse(record));
  // A plan that has just been replaced is not shown with the other one.
  const plan = parsed?.data?.hash === approval.hash ? parsed.data : undefined;
  return { ...viewOf(approval), ...defined({ plan }) };
}

type Deciding = Pick<RouteInput<string, unknown, unknown>, "caller" | "audit">;

/** Approves a plan. The approval that completes it requests the attempt. @throws KonvergeError `approval_stale`, `forbidden` */
export async function approvePlan(
  access: QueueAccess,
  key: ObjectKey,
  body: ApprovalDecision,
  { caller, audit }: Deciding,
): Promise<ApprovalView> {
  const at = new Date().toISOString();
  const store = access.approvals(key.cluster);
  // The attempt of a request may not have begun yet.
  const requesters = await store.requesters(formatKey(key));
  const isDropped = (await store.readPlan(formatKey(key))) === undefined;
  const next = await store.change(formatKey(key), (current) => {
    demandRole(caller, current);
    if (current !== undefined && isDropped) throw dropped(current);
    const { by } = body;
    const { role } = caller;
    const requested = current && requestedBy(current, requesters.keys());
    return approved(requested, { by, role, hash: hashOf(current, body), at });
  });
  audit(noteOf("approval.approve", next, body.reason), body.by);
  // Also for an approval that is repeated, since the process may have died before the request.
  if (next.state === "approved") {
    const names = next.approvals.map(({ by }) => by).join(", ");
    const trigger = { kind: "signal", by: "approval", reason: `approved by ${names}` } as const;
    await access.request(key.cluster, key.controller, ({ queue }) =>
      queue.request(key, trigger, { class: "interactive" }),
    );
  }
  return viewOf(next);
}

/** Rejects a plan. @throws KonvergeError `approval_stale`, `forbidden` */
export async function rejectPlan(
  access: QueueAccess,
  key: ObjectKey,
  body: ApprovalDecision,
  { caller, audit }: Deciding,
): Promise<ApprovalView> {
  const at = new Date().toISOString();
  const { by, reason } = body;
  const next = await access.approvals(key.cluster).change(formatKey(key), (current) => {
    demandRole(caller, current);
    return rejected(current, { by, hash: hashOf(current, body), at, reason });
  });
  audit(noteOf("approval.reject", next, reason), by);
  return viewOf(next);
}

/** Users may not approve changes that they cannot see. */
function dropped({ key, hash }: Approval): KonvergeError {
  return new KonvergeError(
    "approval_stale",
    `the plan ${hash.slice(0, 12)} of ${key} was dropped, because stored plans are limited; request the object to plan it again`,
  );
}

/** The hash that the caller means, which may give only its start. */
function hashOf(current: Approval | undefined, { hash }: ApprovalDecision): string {
  return current?.hash.startsWith(hash) === true ? current.hash : hash;
}

function demandRole(caller: Caller, approval: Approval | undefined): void {
  if (approval === undefined || allows(caller, approval.role)) return;
  const detail = `requires the role ${approval.role} ("${caller.name}" is ${caller.role})`;
  throw new KonvergeError("forbidden", detail);
}

function noteOf(
  action: "approval.approve" | "approval.reject",
  approval: Approval,
  reason: string,
): Omit<AuditNote, "by"> {
  return { action, ...placeOf(viewOf(approval)), filter: approval.hash, reason };
}

function placeOf({ cluster, controller, namespace, name }: ApprovalView) {
  return { cluster, controller, namespace: namespaceSegment(namespace), name };
}

function viewOf({
  uid: _uid,
  version: _version,
  attempt: _attempt,
  epoch: _epoch,
  salt: _salt,
  ...approval
}: Approval): ApprovalView {
  const { cluster, namespace, name } = parseKey(approval.key);
  const { rejected: no, requesters, approvals, summary } = approval;
  return {
    ...approval,
    summary: summary as ApprovalView["summary"],
    requesters: [...requesters],
    approvals: approvals.map(({ by, at }) => ({ by, at })),
    cluster,
    name,
    ...defined({ namespace, rejected: no }),
  };
}
