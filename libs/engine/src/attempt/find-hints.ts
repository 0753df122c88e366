import { HINTS, type Hint, type HintCode } from "@konverge/records";
import {
  findCause,
  handlerSucceeded,
  isKonvergeError,
  type ObjectKey,
  type Outcome,
} from "@konverge/core";
import {
  isAlreadyExists,
  isKubeApiError,
  isNotFound,
  isNotPermitted,
  type ConflictRecord,
  type KubeApiError,
} from "@konverge/kube";
import type { AttemptTrace, WriteTrace } from "../access/attempt-trace.ts";
import type { AttemptRun } from "./run-attempt.ts";

/** V8's messages for a change of a frozen object. */
const FROZEN =
  /^Cannot (assign to read only property|add property|delete property|define property)|object is not extensible/;

/** Finds the handler problems that one attempt shows. `findLoop` finds those that need several attempts. */
export function findHints({ outcome, trace }: AttemptRun, key: ObjectKey): Hint[] {
  const hints: Hint[] = [];
  const give = (code: HintCode, detail: string) => hints.push(hintOf(code, detail));

  const error = errorOf(outcome);
  const api = findCause(error, isApiError);
  if (api !== undefined && isAlreadyExists(api) && api.verb === "create") {
    give("already_exists", nameOf(api));
  }
  if (api !== undefined && isNotPermitted(api)) give("missing_permission", permissionFor(api));
  // For a create, not found means a missing namespace.
  if (api !== undefined && isNotFound(api) && api.verb !== "create" && outcome.kind === "retry") {
    const deleted = trace.writes.some(
      ({ verb, name }) => verb === "delete" && name.name === api.ref?.name,
    );
    give("not_found_as_failure", deleted ? `${nameOf(api)}, just deleted` : nameOf(api));
  }
  if (findCause(error, isFrozenError) !== undefined) give("cached_object_mutated", "");
  if (trace.writes.some((write) => isOwnSpec(write, key))) give("own_spec_written", "");
  const swallowed = findSwallowed(outcome, trace);
  if (swallowed !== undefined) {
    give("swallowed_conflict", `${swallowed.ref.kind} ${swallowed.ref.name}`);
  }
  return hints;
}

/** `detail` contains names of objects and fields, never values (P12). */
export function hintOf(code: HintCode, detail: string): Hint {
  return { code, message: detail === "" ? HINTS[code] : `${HINTS[code]} (${detail})` };
}

/** A conflict that the handler caught before it returned a success. */
function findSwallowed(
  { kind }: Outcome,
  { conflicts, writes }: AttemptTrace,
): ConflictRecord | undefined {
  if (!handlerSucceeded(kind)) return undefined;
  return conflicts.find((conflict) => conflict.isThrown && !isSettled(conflict, writes));
}

/** True if the handler retried successfully after the conflict. */
function isSettled({ ref }: ConflictRecord, writes: readonly WriteTrace[]): boolean {
  return writes.some(
    ({ type, name }) =>
      type.group === ref.group &&
      type.resource === ref.resource &&
      name.name === ref.name &&
      name.namespace === ref.namespace,
  );
}

function errorOf(outcome: Outcome): Error | undefined {
  return "error" in outcome ? outcome.error : undefined;
}

function isApiError(candidate: unknown): candidate is KubeApiError {
  return isKonvergeError(candidate) && isKubeApiError(candidate);
}

function isFrozenError(candidate: unknown): candidate is TypeError {
  return candidate instanceof TypeError && FROZEN.test(candidate.message);
}

function nameOf({ ref }: KubeApiError): string {
  return ref === undefined ? "" : `${ref.kind ?? ref.resource} ${ref.name ?? ""}`.trim();
}

/** The entry that the controller's `permissions` need. */
function permissionFor({ ref, verb }: KubeApiError): string {
  if (ref === undefined || verb === undefined) return "";
  const { kind, namespace } = ref;
  // Server-side apply is a patch for RBAC.
  const needed = verb === "apply" ? "patch" : verb;
  const where = namespace === undefined ? "all namespaces" : `namespace ${namespace}`;
  return `permissions: [{ type: ${kind}, verbs: ["${needed}"] }], for ${where}`;
}

/** The status is a subresource, and finalizers and labels may be written by a controller. */
function isOwnSpec({ verb, type, name, subresource, patch, object }: WriteTrace, key: ObjectKey) {
  const isOwn =
    type.group === key.group &&
    type.resource === key.resource &&
    name.name === key.name &&
    name.namespace === key.namespace;
  if (!isOwn || subresource !== undefined) return false;
  return verb === "patch" ? "spec" in (patch ?? {}) : verb === "apply" && "spec" in object;
}
