import type {
  CancelResponse,
  PauseAction,
  PauseList,
  ReleaseAction,
  ReleaseResponse,
  ResumeResponse,
} from "@konverge/contracts";
import {
  defined,
  isKonvergeError,
  KonvergeError,
  namespaceSegment,
  parseKey,
  type ObjectKey,
} from "@konverge/core";
import type { OperatorAction, PauseScope, WorkQueue } from "@konverge/queue";
import { classFor, demand } from "../access/caller.ts";
import type { RouteInput } from "../http/route.ts";
import { placeNamed, placeOf } from "./place-of.ts";
import { keyFor, type QueueAccess } from "./queue-access.ts";
import { controllerNames, listPauses } from "./queue-view.ts";

/** The author of an action and the audit log that records it. */
type Acting = Pick<RouteInput<string, unknown, unknown>, "caller" | "audit">;

/** Pauses a controller, namespace or object, and returns all pauses. */
export async function pause(
  access: QueueAccess,
  action: PauseAction,
  { caller, audit }: Acting,
): Promise<PauseList> {
  demand(caller, placeNamed(action));
  for (const [index, { queue, scope }] of (await pauseTargets(access, action)).entries()) {
    await queue.control.pause(scope, action);
    // Recorded even if a later target fails.
    if (index === 0) audit({ action: "pause", ...noteOf(action) }, action.by);
  }
  return await listPauses(access, caller, action.cluster);
}

/** Resumes a controller, namespace or object. @throws KonvergeError `not_found` if nothing of it is paused */
export async function resume(
  access: QueueAccess,
  action: PauseAction,
  { caller, audit }: Acting,
): Promise<ResumeResponse> {
  demand(caller, placeNamed(action));
  let resumed = 0;
  let isPaused = false;
  let missing: KonvergeError | undefined;
  try {
    for (const { queue, scope } of await pauseTargets(access, action)) {
      try {
        resumed += (await queue.control.resume(scope, action)).resumed;
        isPaused = true;
      } catch (error) {
        if (!isKonvergeError(error) || error.code !== "not_found") throw error;
        missing = error;
      }
    }
  } finally {
    // Recorded even if a later target failed.
    if (isPaused) audit({ action: "resume", ...noteOf(action), count: resumed }, action.by);
  }
  if (!isPaused && missing !== undefined) throw missing;
  return { resumed };
}

interface PauseTarget {
  readonly queue: WorkQueue;
  readonly scope: PauseScope;
}

async function pauseTargets(
  access: QueueAccess,
  { cluster, controller, namespace, name }: PauseAction,
): Promise<PauseTarget[]> {
  const targets: PauseTarget[] = [];
  for (const each of await controllerNames(access, cluster, controller)) {
    const { queue, announced } = await access.find(cluster, each);
    const scope: PauseScope =
      name !== undefined
        ? { kind: "key", key: keyFor(announced, { namespace, name }) }
        : namespace !== undefined
          ? { kind: "namespace", namespace }
          : { kind: "controller" };
    targets.push({ queue, scope });
  }
  if (targets.length > 0) return targets;
  throw new KonvergeError("not_found", `no controllers found in cluster "${cluster}"`);
}

/** Cancels one request. */
export async function cancelRequest(
  access: QueueAccess,
  id: string,
  { action, caller, audit }: Acting & { readonly action: OperatorAction },
): Promise<CancelResponse> {
  const key = keyOfRequest(id);
  const place = placeOf(key);
  demand(caller, place);
  const { queue } = await access.find(key.cluster, key.controller);
  const result = await queue.control.cancel(id, action);
  const { reason, by } = action;
  audit({ action: "cancel", ...place, name: key.name, filter: id, reason }, by);
  return { id, result };
}

/** Releases one dead-lettered key, or all that match; a dry run counts them. */
export async function releaseDeadLetters(
  access: QueueAccess,
  body: ReleaseAction,
  { caller, audit }: Acting,
): Promise<ReleaseResponse> {
  demand(caller, placeNamed(body));
  const { cluster, controller, namespace, name, contains, dryRun, by, reason } = body;
  // A release makes interactive requests.
  classFor(caller, "interactive", "interactive");
  const { queue, announced } = await access.find(cluster, controller);
  const selection =
    name === undefined
      ? { match: defined({ namespace, name: contains }) }
      : { key: keyFor(announced, { namespace, name }) };
  const via = caller.via === "process" ? "cli" : "http";
  const { count } = await queue.control.release(selection, { by, reason }, { dryRun, via });
  if (!dryRun) {
    const filter = contains === undefined ? undefined : `name contains ${contains}`;
    audit({ action: "release", ...noteOf(body), ...defined({ filter }), count }, by);
  }
  return { count, dryRun };
}

/** Returns the key of a request. @throws KonvergeError `not_found` */
export function keyOfRequest(id: string): ObjectKey {
  const end = id.lastIndexOf("@");
  try {
    return parseKey(end === -1 ? id : id.slice(0, end));
  } catch (error) {
    throw new KonvergeError("not_found", `no request has the id "${id}"`, { cause: error });
  }
}

function noteOf({ cluster, controller, namespace, name, reason }: PauseAction | ReleaseAction) {
  return {
    cluster,
    ...defined({ controller, namespace }),
    ...(name === undefined ? {} : { name, namespace: namespaceSegment(namespace) }),
    reason,
  };
}
