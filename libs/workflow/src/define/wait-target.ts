import { defined, KonvergeError, type ApiObject } from "@konverge/core";
import type { ObjectRef } from "./object-ref.ts";

/**
 * An object to wait for: what a step returned, or a name. With a uid only that very object counts, without one whatever is
 * found under the name, also if it is not there yet.
 */
export type WaitTarget = Pick<ObjectRef, "apiVersion" | "kind" | "name"> & Partial<ObjectRef>;

const NAMES = ["apiVersion", "kind", "name"] as const;

/** @throws KonvergeError `invalid_workflow` naming the field */
export function checkTarget(target: unknown, where: string): WaitTarget {
  if (typeof target !== "object" || target === null) {
    throw invalidCondition(
      `${where}(...) got ${target === null ? "null" : typeof target} as its object; give what a step of k returned, or { apiVersion, kind, namespace, name }`,
    );
  }
  const given = target as Readonly<Record<string, unknown>>;
  const missing = NAMES.find((name) => typeof given[name] !== "string" || given[name] === "");
  if (missing !== undefined) {
    throw invalidCondition(
      `${where}(...) got an object without ${missing}; give what a step of k returned, or { apiVersion, kind, namespace, name }`,
    );
  }
  return target as WaitTarget;
}

/** For people: `Deployment team-a/web`. */
export function nameOf({ cluster, kind, namespace, name }: WaitTarget): string {
  const where = cluster === undefined ? "" : ` of cluster ${cluster}`;
  return `${kind} ${namespace === undefined ? name : `${namespace}/${name}`}${where}`;
}

/** The object as it was found, without what it holds. */
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
