import type { Subresource } from "../kinds/resource-kind.ts";

/** The target of a URL path. */
export type RequestPath =
  | { readonly kind: "resource"; readonly resource: ResourcePath }
  /** Discovery documents, health and version, distinguished by the path. */
  | { readonly kind: "other"; readonly path: string };

export interface ResourcePath {
  readonly group: string;
  readonly version: string;
  readonly resource: string;
  readonly namespace: string;
  readonly name: string;
  readonly subresource: string;
}

const SUBRESOURCES: ReadonlySet<string> = new Set<Subresource>([
  "",
  "eviction",
  "finalize",
  "scale",
  "status",
]);

/** Returns true for a subresource of any served kind. */
export const isSubresource = (name: string): name is Subresource => SUBRESOURCES.has(name);

/** Parses a path with decoded segments; an unknown path is "other". */
export function parsePath(path: string): RequestPath {
  const other: RequestPath = { kind: "other", path };
  let parts: string[];
  try {
    parts = path
      .split("/")
      .filter((part) => part !== "")
      .map(decodeURIComponent);
  } catch {
    return other;
  }
  const [root, ...rest] = parts;
  const [group, version, ...inside] = root === "api" ? ["", ...rest] : rest;
  if ((root !== "api" && root !== "apis") || group === undefined || version === undefined)
    return other;
  if (inside.length === 0 || inside.length > 5) return other;
  const [first = "", second = "", third, ...tail] = inside;
  // A namespace is followed by its objects, except for its own subresources.
  const isNamespaced =
    first === "namespaces" && third !== undefined && third !== "status" && third !== "finalize";
  const [resource, name = "", subresource = "", ...more] = isNamespaced
    ? [third, ...tail]
    : [first, second, ...(third === undefined ? [] : [third, ...tail])];
  if (more.length > 0) return other;
  const namespace = isNamespaced ? second : "";
  return { kind: "resource", resource: { group, version, resource, namespace, name, subresource } };
}

/** Returns the verb of a request, as used by RBAC, audit and fault rules. */
export function verbOf(method: string, hasName: boolean, query: URLSearchParams): string {
  switch (method) {
    case "GET":
    case "HEAD": {
      const watch = query.get("watch");
      if (watch !== null && watch !== "0" && watch !== "false") return "watch";
      return hasName ? "get" : "list";
    }
    case "POST":
      return "create";
    case "PUT":
      return "update";
    case "PATCH":
      return "patch";
    case "DELETE":
      return hasName ? "delete" : "deletecollection";
    default:
      return method.toLowerCase();
  }
}
