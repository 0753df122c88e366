import type { Role } from "@konverge/contracts";
import { formatApiVersion, KonvergeError } from "@konverge/core";
import type { OpenKind } from "@konverge/mutations";
import { allows, type Caller } from "../access/caller.ts";

interface Named {
  readonly cluster: string;
  readonly kind: string;
  readonly apiVersion?: string | undefined;
}

/** Returns the open kind of a name. @throws KonvergeError `kind_not_open`, `invalid_request` */
export function findOpenKind(kinds: readonly OpenKind[], named: Named): OpenKind {
  const { cluster, kind, apiVersion } = named;
  const found = kinds.filter(
    (each) => each.kind === kind && (apiVersion === undefined || apiVersion === apiVersionOf(each)),
  );
  const [only, other] = found;
  if (only !== undefined && other === undefined) return only;
  const pointer = only === undefined ? "/kind" : "/apiVersion";
  if (only !== undefined) {
    const versions = found.map(apiVersionOf).join(", ");
    const detail = `is required, because ${kind} is open in ${versions}`;
    throw new KonvergeError("invalid_request", `apiVersion ${detail}`, {
      issues: [{ pointer, detail }],
    });
  }
  const known = kinds.map((each) => `${each.kind} (${apiVersionOf(each)})`).join(", ") || "none";
  const wanted = apiVersion === undefined ? kind : `${kind} (${apiVersion})`;
  const detail = `kind ${wanted} is not open for mutations in cluster "${cluster}"; add it to mutations.kinds of the workers' configuration; open: ${known}`;
  throw new KonvergeError("kind_not_open", detail, { issues: [{ pointer, detail }] });
}

export function apiVersionOf({ group, version }: OpenKind): string {
  return formatApiVersion(group, version);
}

/**
 * Returns the fields that a caller may change of a kind; undefined for all.
 * @throws KonvergeError `forbidden` if the caller may not change the kind
 */
export function pathsFor(caller: Caller, open: OpenKind): readonly string[] | undefined {
  const { kind } = open;
  const role: Role = open.role ?? "operator";
  if (!allows(caller, role)) {
    const detail = `mutations of ${kind} require the role ${role} ("${caller.name}" is ${caller.role})`;
    throw new KonvergeError("forbidden", detail);
  }
  const { kinds } = caller.scope;
  if (kinds === undefined) return undefined;
  const own = kinds.map(parseKindScope).filter((each) => each.kind === kind);
  if (own.length === 0) {
    const detail = `kind "${kind}", but the token is limited to ${kinds.join(", ")}`;
    throw new KonvergeError("forbidden", detail);
  }
  const paths = own.flatMap(({ path }) => (path === undefined ? [] : [path]));
  return paths.length < own.length ? undefined : paths;
}

/** True if a caller may see the mutations of a kind. */
export function seesKind({ scope: { kinds } }: Caller, kind: string): boolean {
  return kinds === undefined || kinds.some((each) => parseKindScope(each).kind === kind);
}

/** Parses `Deployment` or `Deployment:/spec/replicas`. */
function parseKindScope(text: string): { readonly kind: string; readonly path?: string } {
  const colon = text.indexOf(":");
  return colon === -1
    ? { kind: text }
    : { kind: text.slice(0, colon), path: text.slice(colon + 1) };
}
