import { defined, resourceId, type ErrorIssue, type ResourceType } from "@konverge/core";
import { parsePointer, type OpenKind } from "@konverge/mutations";

/** The changes of objects that other systems may request over the HTTP API. */
export interface MutationOptions {
  /** The kinds that mutations may change: a kind, or a kind with restrictions. All others are refused. */
  readonly kinds: readonly (ResourceType | MutationKind)[];
}

/** A kind that mutations may change, with restrictions. */
export interface MutationKind {
  /** The kind, such as `Deployment` or a resource of `defineResource`. */
  readonly type: ResourceType;
  /**
   * JSON Pointers below which mutations may change the object, such as `/spec/replicas`. Default: the whole object, without its
   * identity.
   */
  readonly paths?: readonly string[];
  /** Must be true for Secrets and for kinds that grant permissions, which are refused otherwise. Default false. */
  readonly sensitive?: boolean;
  /** The role that a token needs for this kind. Default `operator`. */
  readonly role?: "admin";
}

const KNOWN = ["type", "paths", "sensitive", "role"];
const RBAC_GROUP = "rbac.authorization.k8s.io";

/** Returns the kinds as workers announce them. */
export function openKindsOf(options: MutationOptions | undefined): readonly OpenKind[] {
  return (options?.kinds ?? []).map((entry) => {
    const { type, paths, sensitive = isSensitive(type), role } = entryOf(entry);
    const { group, version, kind, resource, scope } = type;
    return {
      group,
      version,
      kind,
      resource,
      scope,
      ...defined({ paths, role }),
      ...(sensitive ? { sensitive } : {}),
    };
  });
}

export function findMutationIssues(options: unknown): ErrorIssue[] {
  const { kinds, ...others } = (options ?? {}) as { readonly kinds?: unknown };
  const issue = (pointer: string, detail: string): ErrorIssue => ({
    pointer: `/mutations${pointer}`,
    detail: `mutations${pointer.replaceAll("/", ".")}: ${detail}`,
  });
  const unknown = Object.keys(others).map((key) =>
    issue(`/${key}`, "is unknown; valid options: kinds"),
  );
  if (!Array.isArray(kinds)) {
    return [...unknown, issue("/kinds", "must be a list of kinds, or of { type, paths }")];
  }
  const seen = new Set<string>();
  const found = kinds.flatMap((entry: unknown, at) => {
    const detail = findKindIssue(entry);
    if (detail !== undefined) return [issue(`/kinds/${at}`, detail)];
    const id = resourceId(entryOf(entry as ResourceType).type);
    const isTwice = seen.has(id);
    seen.add(id);
    return isTwice
      ? [issue(`/kinds/${at}`, `"${id}" is in the list twice; combine its paths`)]
      : [];
  });
  return [...unknown, ...found];
}

function findKindIssue(entry: unknown): string | undefined {
  if (typeof entry !== "object" || entry === null) return "must be a kind, or { type, paths }";
  const given = entryOf(entry as ResourceType) as Partial<MutationKind>;
  const { type, paths, sensitive, role } = given;
  const unknown = Object.keys(given).find((key) => !KNOWN.includes(key));
  if (unknown !== undefined) return `${unknown} is unknown; valid options: ${KNOWN.join(", ")}`;
  if (typeof type?.kind !== "string" || typeof type.resource !== "string") {
    return "type must be a kind, such as ConfigMap or a result of defineResource";
  }
  if (role !== undefined && role !== "admin")
    return `role must be "admin" (got ${JSON.stringify(role)})`;
  if (paths !== undefined) {
    const wrong = Array.isArray(paths)
      ? paths.find((path: unknown) => typeof path !== "string" || !parsePointer(path)?.length)
      : paths;
    if (wrong !== undefined) {
      return `paths must be JSON Pointers, such as "/spec/replicas" (got ${JSON.stringify(wrong)})`;
    }
  }
  if (isSensitive(type) && sensitive !== true) {
    return `${type.kind} holds secrets or grants permissions; set sensitive: true to let mutations change it`;
  }
  return undefined;
}

function isSensitive({ group, resource, sensitive }: ResourceType): boolean {
  return sensitive === true || group === RBAC_GROUP || (group === "" && resource === "secrets");
}

function entryOf(entry: ResourceType | MutationKind): MutationKind {
  return "type" in entry ? entry : { type: entry };
}
