import { jsonEquals, type JsonObject, type JsonValue } from "@konverge/core";
import { invalid, notSupported, required, type FieldError } from "../errors/field-error.ts";
import {
  finalizersOf,
  formatTime,
  metadataOf,
  nameOf,
  objectOf,
  objectsOf,
  stringsOf,
  textOf,
} from "../objects/metadata.ts";
import { defineBuiltinKind } from "./builtin-kind.ts";
import { structuralErrors } from "./crd-structure.ts";
import { patternErrors } from "./pattern-errors.ts";
import type { ResourceKind } from "./resource-kind.ts";
import { ruleErrors } from "./rule-errors.ts";

/** Keeps a deleted definition until its objects are deleted. */
export const CLEANUP_FINALIZER = "customresourcecleanup.apiextensions.k8s.io";

export const customResourceDefinition: ResourceKind = defineBuiltinKind({
  group: "apiextensions.k8s.io",
  version: "v1",
  kind: "CustomResourceDefinition",
  resource: "customresourcedefinitions",
  shortNames: ["crd", "crds"],
  categories: ["api-extensions"],
  namespaced: false,
  updatesUnconditionally: false,
  definition: "apiextensions.v1.CustomResourceDefinition",
  subresources: ["status"],
  generationOf: (object) => object["spec"],
  applyDefaults,
  prepareCreate: (object) => {
    object["status"] = {
      conditions: null,
      acceptedNames: { plural: "", kind: "" },
      storedVersions: [storageVersionOf(object)],
    };
  },
  prepareUpdate: (next, live, subresource) => {
    if (subresource !== "") return;
    const status: JsonObject = { ...objectOf(live, "status") };
    const stored = stringsOf(status, "storedVersions");
    const storage = storageVersionOf(next);
    next["status"] = stored.includes(storage)
      ? status
      : { ...status, storedVersions: [...stored, storage] };
  },
  validateCreate: validateDefinition,
  validateUpdate: (next, live, subresource) =>
    subresource === "" ? [...validateDefinition(next), ...validateUpdate(next, live)] : [],
  // Its objects are deleted first: the definition is only marked, regardless of its finalizers.
  prepareDelete: (object) => {
    const finalizers = finalizersOf(object);
    if (!finalizers.includes(CLEANUP_FINALIZER)) finalizers.push(CLEANUP_FINALIZER);
    metadataOf(object)["finalizers"] = finalizers;
    setCondition(object, {
      type: "Terminating",
      status: "True",
      reason: "InstanceDeletionPending",
      message:
        "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
    });
  },
});

/** Sets a condition of a definition, in place. */
export function setCondition(
  crd: JsonObject,
  condition: {
    readonly type: string;
    readonly status: string;
    readonly reason: string;
    readonly message: string;
  },
): void {
  const status = objectOf(crd, "status") ?? {};
  const others = objectsOf(status, "conditions").filter(({ type }) => type !== condition.type);
  const { type, ...rest } = condition;
  const time = { lastTransitionTime: formatTime(Date.now()) };
  const { status: value, ...words } = rest;
  const next: JsonObject = { type, status: value, ...time, ...words };
  crd["status"] = { ...status, conditions: [...others, next] };
}

function applyDefaults(object: JsonObject): void {
  const spec = objectOf(object, "spec");
  if (spec === undefined) return;
  const names = objectOf(spec, "names");
  if (names !== undefined) {
    names["singular"] ??= textOf(names, "kind").toLowerCase();
    names["listKind"] ??= `${textOf(names, "kind")}List`;
  }
  const conversion = objectOf(spec, "conversion") ?? {};
  conversion["strategy"] ??= "None";
  spec["conversion"] = conversion;
  // Written by tools for the old API; false is the meaning in v1 anyway.
  if (spec["preserveUnknownFields"] === false) delete spec["preserveUnknownFields"];
}

const storageVersionOf = (object: JsonObject): string =>
  textOf(
    objectsOf(objectOf(object, "spec") ?? {}, "versions").find(({ storage }) => storage === true) ??
      {},
    "name",
  );

function validateDefinition(object: JsonObject): FieldError[] {
  const spec = objectOf(object, "spec") ?? {};
  const names = objectOf(spec, "names") ?? {};
  const group = textOf(spec, "group");
  const errors: FieldError[] = [];
  const expected = `${textOf(names, "plural")}.${group}`;
  if (nameOf(object) !== expected) {
    const detail = 'must be spec.names.plural+"."+spec.group';
    errors.push(invalid("metadata.name", nameOf(object), detail));
  }
  if (group === "") errors.push(required("spec.group"));
  else if (!group.includes(".")) {
    errors.push(invalid("spec.group", group, "should be a domain with at least one dot"));
  }
  const scope = textOf(spec, "scope");
  if (scope !== "Cluster" && scope !== "Namespaced") {
    errors.push(
      scope === ""
        ? required("spec.scope")
        : notSupported("spec.scope", scope, ["Cluster", "Namespaced"]),
    );
  }
  for (const member of ["plural", "singular", "kind", "listKind"]) {
    if (textOf(names, member) === "") errors.push(required(`spec.names.${member}`));
  }
  const strategy = textOf(objectOf(spec, "conversion") ?? {}, "strategy");
  if (strategy !== "None") {
    // The only rule of our own: a webhook cannot be called here.
    const detail = "the embedded API server converts with strategy None only";
    errors.push(invalid("spec.conversion.strategy", strategy, detail));
  }
  errors.push(...validateVersions(objectsOf(spec, "versions")));
  return errors;
}

function validateVersions(versions: readonly JsonObject[]): FieldError[] {
  const path = "spec.versions";
  const errors: FieldError[] = [];
  const storing = versions.filter(({ storage }) => storage === true).length;
  if (storing !== 1) {
    const list: JsonValue = [...versions];
    errors.push(invalid(path, list, "must have exactly one version marked as storage version"));
  }
  for (const [index, version] of versions.entries()) {
    const schema = objectOf(objectOf(version, "schema") ?? {}, "openAPIV3Schema");
    const schemaPath = `${path}[${index}].schema.openAPIV3Schema`;
    if (schema === undefined) errors.push(required(schemaPath, "schemas are required"));
    else errors.push(...structuralErrors(schema, schemaPath));
  }
  return errors.length > 0 ? errors : validatePatternsAndRules(versions);
}

/** Checks the patterns and the CEL rules of all versions. Versions with equal schemas share one path, as in the real server. */
function validatePatternsAndRules(versions: readonly JsonObject[]): FieldError[] {
  const schemas = versions.map((version) => objectOf(version, "schema") ?? {});
  const areEqual = schemas.every((schema) => jsonEquals(schema, schemas[0]));
  const distinct = areEqual ? schemas.slice(0, 1) : schemas;
  return distinct.flatMap((schema, index) => {
    const place = areEqual ? "spec.validation" : `spec.versions[${index}].schema`;
    const path = `${place}.openAPIV3Schema`;
    const content = objectOf(schema, "openAPIV3Schema") ?? {};
    return [...patternErrors(content, path), ...ruleErrors(content, path)];
  });
}

function validateUpdate(next: JsonObject, live: JsonObject): FieldError[] {
  const before = objectOf(live, "spec") ?? {};
  const after = objectOf(next, "spec") ?? {};
  const isFixed = (path: readonly [string, string?]): FieldError[] => {
    const [first, second] = path;
    const pick = (spec: JsonObject) =>
      second === undefined ? spec[first] : objectOf(spec, first)?.[second];
    const value = pick(after);
    if (jsonEquals(value, pick(before))) return [];
    return [invalid(`spec.${path.join(".")}`, value ?? "", "field is immutable")];
  };
  return [
    ...isFixed(["group"]),
    ...isFixed(["names", "plural"]),
    ...isFixed(["scope"]),
    ...isFixed(["names", "kind"]),
  ];
}
