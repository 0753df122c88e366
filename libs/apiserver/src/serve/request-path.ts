import type { Subresource } from "../kinds/resource-kind.ts";

/** What a URL path asks for. */
export type RequestPath =
  | { readonly kind: "resource"; readonly resource: ResourcePath }
  /** Discovery documents, health and version: the path itself says which. */
  | { readonly kind: "other"; readonly path: string };

export interface ResourcePath {
  readonly group: string;
  readonly version: string;
  readonly resource: string;
  readonly namespace: string;
  readonly name: string;
  readonly subresource: string;
}

const SUBRESOURCES: ReadonlySet<string> = new Set<Subresource>(["", "finalize", "scale", "status"]);

/** True for a subresource that any kind here may have. */
export const isSubresource = (name: string): name is Subresource => SUBRESOURCES.has(name);

/** Reads a path. Segments are decoded; a path that no API server has is "other". */
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
  // Below a namespace come its objects, except for what a namespace itself has.
  const isNamespaced =
    first === "namespaces" && third !== undefined && third !== "status" && third !== "finalize";
  const [resource, name = "", subresource = "", ...more] = isNamespaced
    ? [third, ...tail]
    : [first, second, ...(third === undefined ? [] : [third, ...tail])];
  if (more.length > 0) return other;
  const namespace = isNamespaced ? second : "";
  return { kind: "resource", resource: { group, version, resource, namespace, name, subresource } };
}

/** The verb that RBAC, audit and fault rules know a request by. */
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
