import { compileRules, type RuleTree } from "@konverge/cel";
import {
  cloneJson,
  isJsonObject,
  isRawNumber,
  jsonEquals,
  type JsonObject,
  type JsonValue,
  subdomainErrors,
} from "@konverge/core";
import { invalid, type FieldError } from "../errors/field-error.ts";
import { EMPTY_FIELDS, fieldSetOf } from "../fields/field-set.ts";
import { getPath } from "../objects/dotted-path.ts";
import { generationOf, metadataOf, objectOf, setOrDelete } from "../objects/metadata.ts";
import { sortMembers } from "../objects/sort-members.ts";
import { builtinSchema } from "../schema/builtin-schemas.ts";
import { decodeEmbedded, validateEmbedded } from "../schema/embedded-resources.ts";
import { applyDefaults, pruneCustomResource } from "../schema/prune.ts";
import type { Schema } from "../schema/schema.ts";
import { validateRules } from "../schema/validate-rules.ts";
import { validateListTypes, validateValue } from "../schema/validate.ts";
import type { CrdSpec, CrdVersion } from "./crd-spec.ts";
import type { ResourceKind, ScalePaths, Subresource } from "./resource-kind.ts";

const STATUS_RESET = fieldSetOf([["f:metadata"], ["f:spec"]]);
const MAIN_RESET = fieldSetOf([["f:status"]]);

/** Creates the kind that one version of a CustomResourceDefinition serves. Conversion between versions is `None`. */
export function makeCustomKind(crd: CrdSpec, version: CrdVersion): ResourceKind {
  const { names } = crd;
  const declared = version.schema?.openAPIV3Schema ?? {};
  const schema = withTypeMeta(declared);
  const apiVersion = `${crd.group}/${version.name}`;
  const storing = crd.versions.find(({ storage }) => storage) ?? version;
  const storageApiVersion = `${crd.group}/${storing.name}`;
  const hasStatus = version.subresources?.status !== undefined;
  const scale = readScale(version);
  const subresources = new Set<Subresource>([
    ...(hasStatus ? ["status" as const] : []),
    ...(scale === undefined ? [] : ["scale" as const]),
  ]);
  const preservesAll = crd.preserveUnknownFields === true;
  const { tree } = compileRules(declared, "", true);
  const validate = (next: JsonObject, live?: JsonObject): FieldError[] => [
    ...validateValue(declared, withoutTypeMeta(next), "", live && withoutTypeMeta(live)),
    ...validateScale(next, scale, hasStatus),
    ...validateEmbedded(declared, next),
    ...validateChangedLists(declared, next, live),
  ];
  const prune = (schemaOf: Schema, object: JsonObject): string[] => {
    const unknown = preservesAll ? [] : pruneCustomResource(schemaOf, object);
    applyDefaults(schemaOf, object);
    return unknown;
  };
  const convert = (object: JsonObject, toVersion: string, schemaOf: Schema): JsonObject => {
    const converted = cloneJson(object);
    converted["apiVersion"] = toVersion;
    prune(schemaOf, converted);
    return converted;
  };
  return {
    group: crd.group,
    version: version.name,
    kind: names.kind,
    listKind: names.listKind ?? `${names.kind}List`,
    resource: names.plural,
    singular: names.singular ?? names.kind.toLowerCase(),
    shortNames: names.shortNames ?? [],
    categories: names.categories ?? [],
    namespaced: crd.scope === "Namespaced",
    isCustom: true,
    schema,
    blank: { apiVersion, kind: names.kind, metadata: {} },
    storageApiVersion,
    subresources,
    scale,
    createsOnUpdate: false,
    updatesUnconditionally: false,
    printerColumns: version.additionalPrinterColumns ?? [],
    returnsDeleted: false,
    deletesDependentsByDefault: true,
    selectableFields: (version.selectableFields ?? []).map(({ jsonPath }) => jsonPath.slice(1)),
    nameErrors: subdomainErrors,
    decode: (object) => [...prune(declared, object), ...decodeEmbedded(declared, object)],
    resetFields: (subresource) => {
      if (subresource === "status") return STATUS_RESET;
      return hasStatus && subresource === "" ? MAIN_RESET : EMPTY_FIELDS;
    },
    prepareCreate: (object) => {
      if (hasStatus) delete object["status"];
      metadataOf(object)["generation"] = 1;
    },
    prepareUpdate: (next, live, subresource) =>
      prepareUpdate(next, live, { subresource, hasStatus }),
    validateCreate: (object) => withRules(tree, validate(object), { next: object }),
    validateUpdate: (next, live, subresource, warnings) =>
      withRules(
        tree,
        subresource === "status" ? validateStatus(declared, next, live) : validate(next, live),
        { next, live, warnings },
      ),
    view: (stored) => {
      const seen = convert(stored, apiVersion, declared);
      return jsonEquals(seen, stored) ? stored : seen;
    },
    // Stored objects have the shape and defaults of the storage version, regardless of the version of the write, and
    // the order of kube-apiserver, which some clients compare as text.
    toStorage: (object) =>
      sortMembers(
        apiVersion === storageApiVersion
          ? object
          : convert(object, storageApiVersion, storing.schema?.openAPIV3Schema ?? {}),
      ),
  };
}

function prepareUpdate(
  next: JsonObject,
  live: JsonObject,
  { subresource, hasStatus }: { readonly subresource: Subresource; readonly hasStatus: boolean },
): void {
  if (subresource === "status") {
    // Everything except the status comes from the live object; field owners are tracked nevertheless.
    const { managedFields } = metadataOf(next);
    const metadata = { ...metadataOf(live) };
    setOrDelete(metadata, "managedFields", managedFields);
    const { status } = next;
    for (const key of Object.keys(next)) delete next[key];
    Object.assign(next, live, { metadata });
    setOrDelete(next, "status", status);
    return;
  }
  if (hasStatus) setOrDelete(next, "status", live["status"]);
  const { metadata: _next, ...content } = next;
  const { metadata: _live, ...before } = live;
  if (!jsonEquals(content, before)) metadataOf(next)["generation"] = generationOf(live) + 1;
}

/** Errors after which rules could fail only because of them. */
const BLOCKING: ReadonlySet<FieldError["type"]> = new Set([
  "FieldValueNotSupported",
  "FieldValueRequired",
  "FieldValueTooLong",
  "FieldValueTooMany",
  "FieldValueTypeInvalid",
]);

/** Adds the errors of the schema's rules. */
function withRules(
  tree: RuleTree | undefined,
  errors: FieldError[],
  objects: {
    readonly next: JsonObject;
    readonly live?: JsonObject;
    readonly warnings?: string[];
  },
): FieldError[] {
  if (tree === undefined) return errors;
  if (errors.some(({ type }) => BLOCKING.has(type))) {
    const text =
      "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation";
    return [...errors, invalid("<nil>", null, text)];
  }
  const found = validateRules(tree, objects.next, objects.live);
  objects.warnings?.push(...found.warnings.map(({ field, body }) => `${field}: ${body}`));
  return [...errors, ...found.errors];
}

/** Reports duplicates in lists, unless the replaced object had some too. */
function validateChangedLists(
  declared: Schema,
  next: JsonObject,
  live: JsonObject | undefined,
): FieldError[] {
  const isTolerated = live !== undefined && validateListTypes(declared, live, "").length > 0;
  return isTolerated ? [] : validateListTypes(declared, next, "");
}

function validateStatus(declared: Schema, next: JsonObject, live: JsonObject): FieldError[] {
  const schema = declared.properties?.["status"];
  const status = next["status"];
  if (schema === undefined || status === undefined) return [];
  return [
    ...validateValue(schema, status, "status", live["status"]),
    ...validateListTypes(schema, status, "status"),
  ];
}

function validateScale(
  object: JsonObject,
  scale: ScalePaths | undefined,
  hasStatus: boolean,
): FieldError[] {
  if (scale === undefined) return [];
  const paths = [scale.specReplicas, ...(hasStatus ? [scale.statusReplicas] : [])];
  return paths.flatMap((path) => {
    const obstacle = findObstacle(object, path);
    if (obstacle !== undefined) {
      return [accessorError(path, obstacle, "map[string]interface{}")];
    }
    const value = getPath(object, path);
    if (value === undefined || isRawNumber(value)) return [];
    if (!Number.isInteger(value)) return [accessorError(path, value, "int64")];
    if (typeof value === "number" && value >= 0) return [];
    return [invalid(`.${path}`, value, "should be a non-negative integer")];
  });
}

/** The value at a path that requires an object. */
function findObstacle(object: JsonObject, path: string): JsonValue | undefined {
  const parts = path.split(".");
  for (let length = 1; length < parts.length; length++) {
    const value = getPath(object, parts.slice(0, length).join("."));
    if (value === undefined) return undefined;
    if (!isJsonObject(value)) return value;
  }
  return undefined;
}

/** The error for a value without the type that a path requires, with Go's text. */
function accessorError(path: string, value: JsonValue, expected: string): FieldError {
  const shown = typeof value === "object" ? "[...]" : String(value);
  const detail = `.${path} accessor error: ${shown} is of the type ${goType(value)}, expected ${expected}`;
  return invalid(`.${path}`, 0, detail);
}

function goType(value: JsonValue): string {
  if (Array.isArray(value)) return "[]interface {}";
  if (isJsonObject(value)) return "map[string]interface {}";
  if (typeof value === "number") return Number.isInteger(value) ? "int64" : "float64";
  return typeof value === "boolean" ? "bool" : "string";
}

function readScale(version: CrdVersion): ScalePaths | undefined {
  const scale = version.subresources?.scale;
  if (scale === undefined) return undefined;
  return {
    specReplicas: scale.specReplicasPath.slice(1),
    statusReplicas: scale.statusReplicasPath.slice(1),
    ...(scale.labelSelectorPath === undefined
      ? {}
      : { labelSelector: scale.labelSelectorPath.slice(1) }),
  };
}

/** Validates the types of members that every object has, regardless of the schema. */
function withTypeMeta(declared: Schema): Schema {
  return {
    ...declared,
    properties: {
      ...declared.properties,
      apiVersion: { type: "string" },
      kind: { type: "string" },
      metadata: builtinSchema("meta.v1.ObjectMeta"),
    },
  };
}

function withoutTypeMeta(object: JsonObject): JsonValue {
  const { apiVersion: _apiVersion, kind: _kind, metadata, ...content } = object;
  // A schema may only constrain the name.
  const name = objectOf({ metadata: metadata ?? {} }, "metadata")?.["name"];
  return { ...content, apiVersion: "", kind: "", metadata: name === undefined ? {} : { name } };
}
