import { findNameIssue, type ApiObject, type JsonObject } from "@konverge/core";
import { atLeast, MUST_READ, startFrom, type ReadBasis } from "@konverge/kube";
import { Namespace } from "@konverge/kube/kinds";
import type { Attempt } from "../access/attempt.ts";
import { readSelected } from "../access/read-selected.ts";

/**
 * Reads the reconciled object, from the watch of this worker if it is new enough. Undefined if it does not exist, or if the
 * controller does not reconcile it, since it is outside of the namespaces and selectors of `for`.
 */
export async function readObject(attempt: Attempt): Promise<ApiObject | undefined> {
  const { target, runtime } = attempt;
  // A read would fail forever. Older versions enqueued whatever `map` returned.
  if (findNameIssue(runtime.controller.for, target) !== undefined) return undefined;
  if (target.namespace !== undefined && !(await isInScope(attempt, target.namespace))) {
    attempt.log.debug({}, "object outside of the controller's namespaces, request dropped");
    return undefined;
  }
  const basis = await basisOf(attempt);
  if (basis.kind === "from") return basis.object as unknown as ApiObject;
  const atVersion = basis.kind === "atLeast" ? basis.version : undefined;
  return await readSelected(attempt.client, runtime.controller, { ...target, atVersion });
}

async function isInScope(attempt: Attempt, namespace: string): Promise<boolean> {
  const { client, runtime } = attempt;
  const query = { client, atLeast: attempt.requestedVersion(Namespace) };
  return runtime.isInScope(namespace, query);
}

/** A conflict requires the newest version, and a user request an answer from the API server. */
async function basisOf({
  lease,
  target,
  runtime: { cache, controller },
}: Attempt): Promise<ReadBasis> {
  const { floor, conflicts, class: requestClass } = lease;
  // The competing write is newer than every version in the requests.
  if (floor === undefined || conflicts > 0) return MUST_READ;
  const [within] = controller.sources;
  const known =
    requestClass === "interactive"
      ? undefined
      : await cache.find(controller.for, target, floor, within);
  if (known === undefined) return atLeast(floor);
  return startFrom(known as unknown as JsonObject, atLeast(floor));
}
