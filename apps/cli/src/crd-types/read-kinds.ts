import { isJsonObject, KonvergeError, type JsonObject, type JsonValue } from "@konverge/core";
import type { CrdKind } from "./crd-schema.ts";

/** Selects kinds and their version. */
export interface KindSelection {
  readonly group?: string;
  readonly kind?: string;
  /** Default: the storage version. */
  readonly apiVersion?: string;
}

/**
 * Returns one version of each selected CRD, sorted by group and kind.
 * @throws KonvergeError `not_found` if no CRD is selected, or a CRD does not serve the version
 * @throws KonvergeError `invalid_request` if a CRD has no schema
 */
export function readKinds(crds: readonly JsonObject[], selection: KindSelection = {}): CrdKind[] {
  const specs = crds.map(specOf);
  const inGroup = select(specs, "group", selection.group, ({ group }) => group);
  const selected = select(inGroup, "kind", selection.kind, ({ names }) => names.kind);
  return selected
    .map((spec) => readKind(spec, selection.apiVersion))
    .toSorted((a, b) => (`${a.group}/${a.kind}` < `${b.group}/${b.kind}` ? -1 : 1));
}

interface CrdSpec {
  readonly group: string;
  readonly scope: "Namespaced" | "Cluster";
  readonly names: { readonly kind: string; readonly plural: string };
  readonly versions: readonly JsonObject[];
}

function specOf(crd: JsonObject): CrdSpec {
  const metadata = isJsonObject(crd["metadata"]) ? crd["metadata"] : {};
  const name = typeof metadata["name"] === "string" ? metadata["name"] : "without a name";
  const fail = (detail: string) =>
    new KonvergeError("invalid_request", `the CRD ${name} ${detail}`);
  if (crd["apiVersion"] !== "apiextensions.k8s.io/v1") {
    throw fail(
      `has the apiVersion ${JSON.stringify(crd["apiVersion"] ?? null)}; only apiextensions.k8s.io/v1 is supported: apply it to a cluster and use --from-cluster`,
    );
  }
  const spec = isJsonObject(crd["spec"]) ? crd["spec"] : {};
  const names = isJsonObject(spec["names"]) ? spec["names"] : {};
  const text = (value: JsonValue | undefined, field: string): string => {
    if (typeof value !== "string" || value === "") throw fail(`has no ${field}; add it`);
    return value;
  };
  const scope = text(spec["scope"], "spec.scope");
  if (scope !== "Namespaced" && scope !== "Cluster") {
    throw fail(`has the spec.scope ${JSON.stringify(scope)}; use Namespaced or Cluster`);
  }
  return {
    group: text(spec["group"], "spec.group"),
    scope,
    names: {
      kind: text(names["kind"], "spec.names.kind"),
      plural: text(names["plural"], "spec.names.plural"),
    },
    versions: Array.isArray(spec["versions"]) ? spec["versions"].filter(isJsonObject) : [],
  };
}

function select(
  specs: readonly CrdSpec[],
  option: string,
  wanted: string | undefined,
  valueOf: (spec: CrdSpec) => string,
): readonly CrdSpec[] {
  if (wanted === undefined) return specs;
  const selected = specs.filter((spec) => valueOf(spec) === wanted);
  if (selected.length > 0) return selected;
  const known = [...new Set(specs.map(valueOf))].toSorted().join(", ");
  throw new KonvergeError("not_found", `no CRD has the ${option} ${wanted}; found: ${known}`);
}

function readKind({ group, scope, names, versions }: CrdSpec, wanted: string | undefined): CrdKind {
  const id = `${names.plural}.${group}`;
  const served = versions.filter((version) => version["served"] === true);
  const found = served.find((version) =>
    wanted === undefined ? version["storage"] === true : version["name"] === wanted,
  );
  const version = found?.["name"];
  if (found === undefined || typeof version !== "string") {
    const which = wanted === undefined ? "its storage version" : `the version ${wanted}`;
    const known = served.map(({ name }) => String(name)).join(", ") || "no version";
    throw new KonvergeError(
      "not_found",
      `the CRD ${id} does not serve ${which}, but ${known}; select a version with --api-version, and a kind with --kind`,
    );
  }
  const { openAPIV3Schema: schema } = isJsonObject(found["schema"]) ? found["schema"] : {};
  if (!isJsonObject(schema)) {
    throw new KonvergeError(
      "invalid_request",
      `the CRD ${id} has no schema in version ${version}; add schema.openAPIV3Schema`,
    );
  }
  return {
    group,
    version,
    kind: names.kind,
    resource: names.plural,
    scope,
    schema,
  };
}
