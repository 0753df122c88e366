import type { ResourceType } from "./api-object.ts";

/** Returned for a name that no object of a kind can have. */
export interface NameIssue {
  readonly field: "namespace" | "name";
  /** Follows the name of the field: "is required, because Pool is namespaced". */
  readonly detail: string;
}

/**
 * Returns why no object of a kind can have a name, or undefined if one can. A key with such a name could never be read: its
 * attempts would fail forever. The values may be of any type, because they come from user code and from other programs.
 */
export function findNameIssue(
  { kind, scope }: Pick<ResourceType, "kind" | "scope">,
  { namespace, name }: { readonly namespace?: unknown; readonly name?: unknown },
): NameIssue | undefined {
  if (scope === "Cluster" && namespace !== undefined) {
    return { field: "namespace", detail: `is not allowed, because ${kind} is cluster-scoped` };
  }
  if (scope === "Namespaced" && namespace === undefined) {
    return { field: "namespace", detail: `is required, because ${kind} is namespaced` };
  }
  const wrongNamespace = namespace === undefined ? undefined : segmentIssue(namespace);
  if (wrongNamespace !== undefined) return { field: "namespace", detail: wrongNamespace };
  const wrongName = segmentIssue(name);
  return wrongName === undefined ? undefined : { field: "name", detail: wrongName };
}

/** A name is a segment of a URL path. A dot segment or a slash would address another object, or none. */
function segmentIssue(value: unknown): string | undefined {
  if (value === undefined) return "is required";
  if (typeof value !== "string") return `must be text (got ${typeof value})`;
  if (value === "") return "must not be empty";
  return value === "." || value === ".." || /[/%]/.test(value)
    ? 'must not contain "/" or "%", or be "." or ".."'
    : undefined;
}
