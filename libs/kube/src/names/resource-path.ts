import { defined, KonvergeError, type ResourceType } from "@konverge/core";
import type { ErrorRef } from "../errors/kube-api-error.ts";

export interface NamespacedName {
  /** Absent for cluster-scoped objects. */
  readonly namespace?: string;
  readonly name: string;
}

/** Returns `/api/v1` or `/apis/{group}/{version}`. */
export function groupVersionPath(group: string, version: string): string {
  return group === "" ? `/api/${version}` : `/apis/${group}/${version}`;
}

/** Returns the path of a type's objects, in one namespace or in all. @throws KonvergeError `invalid_request` */
export function collectionPath(
  { group, version, kind, resource, scope }: ResourceType,
  namespace?: string,
): string {
  const base = groupVersionPath(group, version);
  if (namespace === undefined) return `${base}/${resource}`;
  if (scope === "Cluster") {
    throw new KonvergeError(
      "invalid_request",
      `namespace "${namespace}": ${kind} is cluster-scoped; remove the namespace`,
    );
  }
  return `${base}/namespaces/${segment(namespace, "namespace", kind)}/${resource}`;
}

/** Returns the path of one object or of its subresource. @throws KonvergeError `invalid_request` with the field */
export function objectPath(
  type: ResourceType,
  { namespace, name }: NamespacedName,
  subresource?: string,
): string {
  if (type.scope === "Namespaced" && namespace === undefined) {
    throw new KonvergeError(
      "invalid_request",
      `namespace is missing: ${type.kind} "${name}" is namespaced; set one`,
    );
  }
  const path = `${collectionPath(type, namespace)}/${segment(name, "name", type.kind)}`;
  return subresource === undefined
    ? path
    : `${path}/${segment(subresource, "subresource", type.kind)}`;
}

/** Returns the target of an API path; undefined for paths such as `/version`. */
export function parsePath(
  path: string,
): (ErrorRef & { readonly subresource?: string }) | undefined {
  const parts = path.split("?", 1)[0]?.split("/").filter(Boolean).map(decode) ?? [];
  const [root, first, second] = parts;
  if (root !== "api" && root !== "apis") return undefined;
  const group = root === "api" ? "" : (first ?? "");
  const version = (root === "api" ? first : second) ?? "";
  const rest = parts.slice(root === "api" ? 2 : 3);
  // `namespaces/{name}/status` and `/finalize` are subresources of the namespace itself.
  const inNamespace =
    rest[0] === "namespaces" && rest.length > 2 && !NAMESPACE_PARTS.has(rest[2] ?? "");
  const namespace = inNamespace ? rest[1] : undefined;
  const [resource, name, subresource] = inNamespace ? rest.slice(2) : rest;
  if (resource === undefined) return undefined;
  return {
    group,
    version,
    kind: "",
    resource,
    ...defined({ namespace, name, subresource }),
  };
}

/**
 * Rejects a path with an empty segment, or `.` or `..`, for a name: it would address another object or a whole collection.
 * @throws KonvergeError `invalid_request`
 */
export function assertNames(path: string): void {
  const place = parsePath(path);
  if (place === undefined) return;
  const [given = ""] = path.split("?", 1);
  const parts = given.split("/").slice(1).map(decode);
  // The path after a proxy belongs to a program in a Pod.
  const end = place.subresource === "proxy" ? parts.indexOf("proxy") : parts.length;
  const bad = parts.slice(0, end).find((part) => part === "" || part === "." || part === "..");
  if (bad === undefined) return;
  throw new KonvergeError(
    "invalid_request",
    `path "${given}" has a segment "${bad}"; set a name that is not empty, "." or ".."`,
  );
}

const NAMESPACE_PARTS = new Set(["status", "finalize"]);

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch (error) {
    throw new KonvergeError("invalid_request", `path: "${part}" is not percent-encoded`, {
      cause: error,
    });
  }
}

/** A dot segment or a slash in a name would address another object, or none. */
function segment(value: string, field: string, kind: string): string {
  if (value === "" || value === "." || value === ".." || /[/%]/.test(value)) {
    throw new KonvergeError(
      "invalid_request",
      `${field} "${value}" of ${kind} is not a valid path segment; remove "/" and "%"`,
    );
  }
  return encodeURIComponent(value);
}
