import { formatApiVersion, isJsonObject, type JsonObject, type JsonValue } from "@konverge/core";
import type { ResourceKind } from "../kinds/resource-kind.ts";
import { builtinDefinition } from "../schema/builtin-schemas.ts";

/** Kubernetes' names of packages, by the first parts of a definition's name. */
const PACKAGES: Readonly<Record<string, string>> = {
  api: "io.k8s.apimachinery.pkg.api",
  apiextensions: "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions",
  meta: "io.k8s.apimachinery.pkg.apis.meta",
  runtime: "io.k8s.apimachinery.pkg.runtime",
  util: "io.k8s.apimachinery.pkg.util",
};
/** Without `fieldValidation` in the document, kubectl validates objects itself. */
const PARAMETERS = ["dryRun", "fieldManager", "fieldValidation"].map((name) => ({
  name,
  in: "query",
  schema: { type: "string", uniqueItems: true },
}));
const OBJECT_META = "meta.v1.ObjectMeta";
const CONVENTIONS =
  "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md";

/** The members of every custom resource, which `kubectl explain` shows. */
const CUSTOM_MEMBERS: JsonObject = {
  apiVersion: {
    type: "string",
    description: `APIVersion defines the versioned schema of this representation of an object. Servers should convert recognized schemas to the latest internal value, and may reject unrecognized values. More info: ${CONVENTIONS}#resources`,
  },
  kind: {
    type: "string",
    description: `Kind is a string value representing the REST resource this object represents. Servers may infer this from the endpoint the client submits requests to. Cannot be updated. In CamelCase. More info: ${CONVENTIONS}#types-kinds`,
  },
  metadata: {
    description: `Standard object's metadata. More info: ${CONVENTIONS}#metadata`,
    allOf: [reference(OBJECT_META)],
  },
};

/** `/openapi/v3`: a document for each API version. */
export function openApiIndex(kinds: readonly ResourceKind[]): JsonObject {
  const paths = new Set(kinds.map(pathOf));
  return {
    paths: Object.fromEntries(
      [...paths].map((path) => [path, { serverRelativeURL: `/openapi/v3/${path}` }]),
    ),
  };
}

/**
 * `/openapi/v3/<path>`: the kinds of an API version with their schemas; undefined if it is not served. Operations have only
 * what clients read from them, and built-in schemas have no descriptions.
 */
export function openApiDocument(
  kinds: readonly ResourceKind[],
  path: string,
  version: string,
): JsonObject | undefined {
  const served = kinds.filter((kind) => pathOf(kind) === path);
  if (served.length === 0) return undefined;
  const schemas: JsonObject = {};
  const paths: JsonObject = {};
  for (const kind of served) {
    addSchema(schemas, kind);
    Object.assign(paths, operationsOf(kind));
  }
  for (const kind of kinds) {
    const name = kind.definition === undefined ? undefined : fullName(kind.definition);
    // A kind of another version may be part of one of this version.
    if (name !== undefined && isJsonObject(schemas[name]))
      Object.assign(schemas[name], asKind(kind));
  }
  return {
    openapi: "3.0.0",
    info: { title: "Kubernetes", version },
    paths,
    components: { schemas },
  };
}

const pathOf = ({ group, version }: ResourceKind): string =>
  group === "" ? `api/${version}` : `apis/${group}/${version}`;

const asKind = (kind: ResourceKind): JsonObject => ({
  "x-kubernetes-group-version-kind": [typeOf(kind)],
});
const typeOf = ({ group, version, kind }: ResourceKind): JsonObject => ({ group, version, kind });

function operationsOf(kind: ResourceKind): JsonObject {
  const scope = kind.namespaced ? "/namespaces/{namespace}" : "";
  const collection = `/${pathOf(kind)}${scope}/${kind.resource}`;
  const operation = (method: string, action: string): JsonObject => ({
    [method]: {
      operationId: `${action}-${kind.kind}-${formatApiVersion(kind.group, kind.version)}`,
      parameters: PARAMETERS,
      responses: { "200": { description: "OK" } },
      "x-kubernetes-action": action,
      "x-kubernetes-group-version-kind": typeOf(kind),
    },
  });
  return {
    [collection]: { ...operation("get", "list"), ...operation("post", "post") },
    [`${collection}/{name}`]: {
      ...operation("get", "get"),
      ...operation("put", "put"),
      ...operation("patch", "patch"),
    },
  };
}

function addSchema(schemas: JsonObject, kind: ResourceKind): void {
  if (kind.definition !== undefined) {
    addDefinition(schemas, kind.definition);
    return;
  }
  addDefinition(schemas, OBJECT_META);
  const { properties, ...rest } = kind.schema;
  const schema = { ...rest, type: "object", properties: { ...properties, ...CUSTOM_MEMBERS } };
  const domain = kind.group.split(".").toReversed().join(".");
  schemas[`${domain}.${kind.version}.${kind.kind}`] = {
    ...(schema as unknown as JsonObject),
    ...asKind(kind),
  };
}

/** Adds a built-in definition and those that it references. */
function addDefinition(schemas: JsonObject, name: string): void {
  const full = fullName(name);
  if (Object.hasOwn(schemas, full)) return;
  // Reserves the name, because definitions may be circular.
  schemas[full] = {};
  schemas[full] = expand(builtinDefinition(name), (one) => addDefinition(schemas, one));
}

/** Writes references as OpenAPI does: one with other keywords is an allOf with one item. */
function expand(schema: JsonObject, refer: (name: string) => void): JsonObject {
  const { $ref, ...rest } = schema;
  const result: JsonObject = {};
  for (const [key, value] of Object.entries(rest)) {
    if (key === "default" && value === null) continue;
    result[key] = expandMember(key, value, refer);
  }
  if (typeof $ref !== "string") return result;
  refer($ref);
  return Object.keys(result).length === 0
    ? reference($ref)
    : { ...result, allOf: [reference($ref)] };
}

function expandMember(key: string, value: JsonValue, refer: (name: string) => void): JsonValue {
  if (!isJsonObject(value)) return value;
  if (key === "items" || key === "additionalProperties") return expand(value, refer);
  if (key !== "properties") return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [
      name,
      isJsonObject(member) ? expand(member, refer) : member,
    ]),
  );
}

function reference(name: string): JsonObject {
  return { $ref: `#/components/schemas/${fullName(name)}` };
}

function fullName(name: string): string {
  const [first = "", ...rest] = name.split(".");
  return [PACKAGES[first] ?? `io.k8s.api.${first}`, ...rest].join(".");
}
