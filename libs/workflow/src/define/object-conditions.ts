import { defined, ensureError, parseApiVersion, type ApiObject } from "@konverge/core";
import {
  completionOf,
  findCondition,
  findUnseenGeneration,
  isAboutOlderGeneration,
  readinessOf,
  statusTextOf,
  type Readiness,
} from "@konverge/kube";
import type { ObjectRef } from "@konverge/kube";
import type { ObjectCondition, Sighting, Verdict, WaitCondition } from "./wait-condition.ts";
import { checkTarget, invalidCondition, nameOf, refTo, type WaitTarget } from "./wait-target.ts";

export interface ReadyOptions {
  /**
   * Status of a custom resource without a condition Ready. Default `inProgress`: its controller has not reconciled it yet. Use
   * `ready` if the controller never sets one; then an object is ready once it exists.
   */
  readonly none?: "ready" | "inProgress";
}

/**
 * Met when the object is ready by the rules of kstatus, at the generation that the step wrote or a later one. Fails when it
 * reports a failure for as long as `failFast`, or immediately when it is deleted or replaced.
 */
export function ready(target: WaitTarget, { none }: ReadyOptions = {}): WaitCondition<ObjectRef> {
  if (none !== undefined && none !== "ready" && none !== "inProgress") {
    throw invalidCondition(`ready(...): none is "${String(none)}"; write "ready" or "inProgress"`);
  }
  const checked = checkTarget(target, "ready");
  const { resourceVersion } = checked;
  return onLiving(checked, (object, { nowMs }) =>
    fromReadiness(
      readinessOf(object, {
        nowMs,
        ...defined({ none, writtenVersion: resourceVersion }),
      }),
    ),
  );
}

/** Met when the object has the condition with that status, by default `True`, for its current generation. */
export function condition(
  target: WaitTarget,
  type: string,
  { status = "True" }: { readonly status?: "True" | "False" | "Unknown" } = {},
): WaitCondition<ObjectRef> {
  if (typeof type !== "string" || type === "") {
    throw invalidCondition('condition(...) needs the type of a condition, for example "Ready"');
  }
  return onLiving(checkTarget(target, "condition"), (object) => {
    const found = findCondition(object, type);
    if (found === undefined) return { kind: "pending", message: `has no condition ${type}` };
    if (found.status !== status) {
      return { kind: "pending", message: statusTextOf(found, `has ${type} ${found.status}`) };
    }
    const unseen = isAboutOlderGeneration(found, object)
      ? `has ${type} ${status} as of generation ${found.observedGeneration}`
      : findUnseenGeneration(object);
    return unseen === undefined ? "met" : { kind: "pending", message: unseen };
  });
}

/**
 * Met when the predicate returns true. It must have no side effects. An error counts as false, because the fields of a new object
 * are set one by one.
 */
// The caller chooses the object's type, as with every read of the client.
// oxlint-disable-next-line typescript/no-unnecessary-type-parameters
export function field<T extends ApiObject = ApiObject>(
  target: WaitTarget,
  predicate: (object: T) => boolean,
): WaitCondition<ObjectRef> {
  if (typeof predicate !== "function") {
    throw invalidCondition("field(...) needs a function (object) => boolean");
  }
  return onLiving(checkTarget(target, "field"), (object) => {
    let answer: unknown;
    try {
      answer = predicate(object as T);
    } catch (thrown) {
      return { kind: "pending", message: `its predicate threw ${String(ensureError(thrown))}` };
    }
    if (typeof answer !== "boolean") {
      const message = `the predicate of field(...) returned ${answer instanceof Promise ? "a promise" : typeof answer}; return true or false`;
      throw invalidCondition(message);
    }
    return answer ? "met" : { kind: "pending", message: "does not meet its predicate" };
  });
}

/** Met when the object does not exist, or another one has its name. Returns the given ref. */
export function gone(target: WaitTarget): WaitCondition<WaitTarget> {
  const checked = checkTarget(target, "gone");
  return objectCondition(checked, ({ object }) => {
    const uid = object?.metadata.uid;
    if (object === undefined || (checked.uid !== undefined && uid !== checked.uid)) {
      return { kind: "met", value: checked };
    }
    const { deletionTimestamp, finalizers = [] } = object.metadata;
    if (deletionTimestamp === undefined) return { kind: "pending", message: "still exists" };
    const message =
      finalizers.length === 0
        ? "is being deleted"
        : `is being deleted, with finalizers ${finalizers.join(", ")}`;
    return { kind: "pending", message };
  });
}

/** Met when the Job has completed; fails immediately when it has failed or was deleted. */
export function complete(target: WaitTarget): WaitCondition<ObjectRef> {
  const checked = checkTarget(target, "complete");
  const { kind, apiVersion } = checked;
  if (kind !== "Job" || parseApiVersion(apiVersion).group !== "batch") {
    throw invalidCondition(
      `complete(...) waits for Jobs of batch/v1 (got ${kind} of ${apiVersion}); use ready(...) or condition(...)`,
    );
  }
  return onLiving(checked, (job) => {
    const verdict = fromReadiness(completionOf(job));
    // A failed Job never recovers.
    return typeof verdict === "object" && verdict.kind === "failing"
      ? { ...verdict, kind: "failed" }
      : verdict;
  });
}

/** A verdict whose message does not name the object yet. */
type Judgement = "met" | Exclude<Verdict, { kind: "met" }>;

function fromReadiness({ status, message, againAtMs }: Readiness): Judgement {
  switch (status) {
    case "current":
      return "met";
    case "failed":
      return { kind: "failing", code: "object_failed", message: `failed: ${message}` };
    case "terminating":
    case "notFound":
      return { kind: "failed", code: "object_deleted", message };
    case "inProgress":
      return { kind: "pending", message, ...defined({ againAtMs }) };
  }
}

/** Adds the rules for a missing, replaced, deleted or outdated object. */
function onLiving(
  target: WaitTarget,
  judge: (object: ApiObject, sighting: Sighting) => Judgement,
): ObjectCondition {
  return objectCondition(target, (sighting) => {
    const { object, isSensitive } = sighting;
    if (object === undefined) {
      return target.uid === undefined
        ? { kind: "pending", message: "does not exist" }
        : { kind: "failed", code: "object_deleted", message: "was deleted" };
    }
    const { uid, generation = 0, deletionTimestamp } = object.metadata;
    if (target.uid !== undefined && uid !== target.uid) {
      const message = "was deleted and recreated";
      return { kind: "failed", code: "object_replaced", message };
    }
    if (deletionTimestamp !== undefined) {
      return { kind: "failed", code: "object_deleted", message: "is being deleted" };
    }
    if (generation < (target.generation ?? 0)) {
      const message = `has generation ${generation}, the step wrote ${target.generation}`;
      return { kind: "pending", message };
    }
    const verdict = judge(object, sighting);
    if (verdict === "met") return { kind: "met", value: refTo(target, object) };
    // The controller's message may quote its contents (P12).
    return isSensitive ? { ...verdict, message: withoutDetail(verdict) } : verdict;
  });
}

function withoutDetail({ kind }: Exclude<Verdict, { kind: "met" }>): string {
  return kind === "pending" ? "does not meet the condition" : "has failed";
}

function objectCondition(
  target: WaitTarget,
  judge: (sighting: Sighting) => Verdict,
): ObjectCondition {
  return {
    kind: "object",
    target,
    judge(sighting) {
      const verdict = judge(sighting);
      return verdict.kind === "met"
        ? verdict
        : { ...verdict, message: `${nameOf(target)}: ${verdict.message}` };
    },
  };
}
