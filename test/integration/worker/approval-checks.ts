import type { PlanRecord } from "@konverge/records";
import type { AuditedCall } from "../kube/audited-servers.ts";

/** Of the objects that programs write. */
export const namespace = "approvals";

/** A plan that a worker may apply once: approved by users, or not selected by the rule. */
export interface Grant {
  readonly changes: PlanRecord["changes"];
  /** Epoch ms. The writes of the plan follow it. */
  readonly atMs: number;
  /** The end of the plan, in epoch ms. */
  readonly plannedAtMs: number;
  /** True if each write has a precondition, not only the first one of an object. */
  readonly isApproved: boolean;
}

const READS = new Set(["get", "list", "watch"]);
/** Written by the worker itself. */
const OWN = new Set(["events", "leases"]);
const WORKER = "konverge-worker/";

interface Write {
  readonly isWorker: boolean;
  readonly target: string;
  readonly verb: string;
  readonly fromMs: number;
  readonly endMs: number;
}

/** The writes that were stored. */
function storedWrites(calls: readonly AuditedCall[]): Write[] {
  return calls.flatMap((call) => {
    const { verb, requestURI, objectRef, responseStatus, userAgent = "" } = call;
    if (READS.has(verb) || requestURI.includes("dryRun=All") || responseStatus.code >= 300)
      return [];
    if (objectRef?.namespace !== namespace || OWN.has(objectRef.resource)) return [];
    const { resource, name = "", subresource = "" } = objectRef;
    return [
      {
        isWorker: userAgent.startsWith(WORKER),
        target: targetOf({ resource, name, verb }),
        verb: `${verb} ${subresource}`.trim(),
        fromMs: Date.parse(call.requestReceivedTimestamp),
        endMs: Date.parse(call.stageTimestamp),
      },
    ];
  });
}

/** The writes of a plan, by object and in order. */
export function plannedWrites(changes: Grant["changes"]): Map<string, string[]> {
  const planned = new Map<string, string[]>();
  for (const { resource: id, name, writes } of changes) {
    const [resource = ""] = id.split(".", 1);
    for (const { verb, subresource = "" } of writes) {
      const target = targetOf({ resource, name, verb });
      const sent = `${verb === "apply" ? "patch" : verb} ${subresource}`.trim();
      planned.set(target, [...(planned.get(target) ?? []), sent]);
    }
  }
  return planned;
}

/** Returns a name for the written object. Not every server logs the name of a created object. The test has only one widget. */
function targetOf(of: { readonly resource: string; readonly name: string; readonly verb: string }) {
  if (of.resource === "widgets") return "widgets/own";
  return of.verb === "create" ? `${of.resource}/new` : `${of.resource}/${of.name}`;
}

/** Returns the writes of workers that no grant allows, as texts. */
export function findUngranted(calls: readonly AuditedCall[], grants: readonly Grant[]): string[] {
  const writes = storedWrites(calls);
  const ordered = grants.toSorted((one, other) => one.atMs - other.atMs);
  const open = new Map(ordered.map((grant) => [grant, plannedWrites(grant.changes)]));
  const begun = new Set<string>();
  return writes.flatMap((write) => {
    if (!write.isWorker) return [];
    const { target, verb, fromMs } = write;
    const grant = ordered.findLast(({ atMs }) => atMs <= fromMs);
    if (grant === undefined) return [`${verb} ${target}: before any grant`];
    const id = `${ordered.indexOf(grant)} ${target}`;
    const isFirst = !begun.has(id);
    begun.add(id);
    const next = open.get(grant)?.get(target)?.shift();
    if (next !== verb) {
      return [
        `${verb} ${target}: the plan of grant ${ordered.indexOf(grant)} has ${next ?? "no more writes"}`,
      ];
    }
    const isHeld = grant.isApproved || isFirst;
    const foreign = writes.find(
      (other) =>
        !other.isWorker &&
        other.target === target &&
        // The second deletion of an object that waits for its finalizers changes nothing.
        other.verb !== "delete" &&
        other.fromMs > grant.plannedAtMs &&
        other.endMs < fromMs,
    );
    if (!isHeld || foreign === undefined || target.endsWith("/new")) return [];
    return [`${verb} ${target}: overwrites a change that was made after the plan`];
  });
}

/** The writes of workers for a grant, by object and in order: those before the next grant. */
export function writesFor(
  calls: readonly AuditedCall[],
  grant: Grant,
  grants: readonly Grant[],
): Map<string, string[]> {
  const { atMs } = grant;
  const later = grants.filter((other) => other.atMs > atMs);
  const endMs = Math.min(...later.map((other) => other.atMs));
  const made = new Map<string, string[]>();
  for (const { isWorker, target, verb, fromMs } of storedWrites(calls)) {
    if (!isWorker || fromMs < atMs || fromMs >= endMs) continue;
    made.set(target, [...(made.get(target) ?? []), verb]);
  }
  return made;
}
