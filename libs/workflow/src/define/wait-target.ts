import { defined, KonvergeError, type ApiObject, shortName } from "@konverge/core";
import type { ObjectRef } from "@konverge/kube";

/**
 * An object to wait for: a ref that a step returned, or a name. With a uid only that object counts; without one any object with
 * the name, also if it does not exist yet.
 */
export type WaitTarget = Pick<ObjectRef, "apiVersion" | "kind" | "name"> & Partial<ObjectRef>;

const NAMES = ["apiVersion", "kind", "name"] as const;

/** @throws KonvergeError `invalid_workflow` naming the field */
export function checkTarget(target: unknown, where: string): WaitTarget {
  if (typeof target !== "object" || target === null) {
    throw invalidCondition(
      `${where}(...) got ${target === null ? "null" : typeof target} as its object; pass a ref that a step returned, or { apiVersion, kind, namespace, name }`,
    );
  }
  const given = target as Readonly<Record<string, unknown>>;
  const missing = NAMES.find((name) => typeof given[name] !== "string" || given[name] === "");
  if (missing !== undefined) {
    throw invalidCondition(
      `${where}(...) got an object without ${missing}; pass a ref that a step returned, or { apiVersion, kind, namespace, name }`,
    );
  }
  return target as WaitTarget;
}

/** Formats an object for users: `Deployment team-a/web`. */
export function nameOf({ cluster, kind, namespace, name }: WaitTarget): string {
  const where = cluster === undefined ? "" : ` of cluster ${cluster}`;
  return `${kind} ${shortName({ namespace, name })}${where}`;
}

/** Returns the ref of an object, without its contents. */
export function refTo(
  { cluster }: { readonly cluster?: string | undefined },
  { apiVersion, kind, metadata }: ApiObject,
): ObjectRef {
  const { namespace, name, uid = "", generation, resourceVersion = "" } = metadata;
  return {
    ...defined({ cluster }),
    apiVersion,
    kind,
    ...defined({ namespace }),
    name,
    uid,
    ...defined({ generation }),
    resourceVersion,
  };
}

export function invalidCondition(message: string): KonvergeError {
  return new KonvergeError("invalid_workflow", message);
}
