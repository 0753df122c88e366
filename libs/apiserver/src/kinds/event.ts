import { cloneJson, type JsonObject } from "@konverge/core";
import { invalid, type FieldError } from "../errors/field-error.ts";
import { metadataOf, objectOf, textOf } from "../objects/metadata.ts";
import { defineBuiltinKind, type BuiltinKindOptions } from "./builtin-kind.ts";
import type { ResourceKind } from "./resource-kind.ts";

/** Names of the same member in core/v1 and in events.k8s.io/v1. */
const RENAMED: readonly (readonly [string, string])[] = [
  ["involvedObject", "regarding"],
  ["message", "note"],
  ["source", "deprecatedSource"],
  ["firstTimestamp", "deprecatedFirstTimestamp"],
  ["lastTimestamp", "deprecatedLastTimestamp"],
  ["count", "deprecatedCount"],
  ["reportingComponent", "reportingController"],
  ["reportingInstance", "reportingInstance"],
];

const shared: Pick<
  BuiltinKindOptions,
  "kind" | "resource" | "createsOnUpdate" | "storageApiVersion" | "shortNames"
> = {
  kind: "Event",
  resource: "events",
  shortNames: ["ev"],
  createsOnUpdate: true,
  storageApiVersion: "v1",
};

const coreOptions: BuiltinKindOptions = {
  ...shared,
  group: "",
  version: "v1",
  definition: "core.v1.Event",
  blankMembers: { firstTimestamp: null, lastTimestamp: null, eventTime: null },
  selectableFields: [
    "involvedObject.kind",
    "involvedObject.namespace",
    "involvedObject.name",
    "involvedObject.uid",
    "involvedObject.apiVersion",
    "involvedObject.resourceVersion",
    "involvedObject.fieldPath",
    "reason",
    "reportingComponent",
    "source",
    "type",
  ],
  validateCreate: validateCoreEvent,
  // Go writes these members even if they are unset.
  applyDefaults: (object) => {
    object["source"] ??= {};
    object["firstTimestamp"] ??= null;
    object["lastTimestamp"] ??= null;
    object["eventTime"] ??= null;
    object["reportingComponent"] ??= "";
    object["reportingInstance"] ??= "";
  },
};

export const coreEvent: ResourceKind = defineBuiltinKind(coreOptions);

export const event: ResourceKind = defineBuiltinKind({
  ...shared,
  storedAs: { group: "", resource: "events" },
  group: "events.k8s.io",
  version: "v1",
  definition: "events.v1.Event",
  blankMembers: {
    deprecatedFirstTimestamp: null,
    deprecatedLastTimestamp: null,
    eventTime: null,
  },
  selectableFields: ["reason", "reportingController", "type"],
  view: (stored) => rename(stored, 0, "events.k8s.io/v1"),
  toStorage: (object) => rename(object, 1, "v1"),
  validateCreate: validateNewEvent,
  applyDefaults: (object) => {
    object["regarding"] ??= {};
    object["deprecatedSource"] ??= {};
    object["deprecatedFirstTimestamp"] ??= null;
    object["deprecatedLastTimestamp"] ??= null;
    object["eventTime"] ??= null;
  },
});

function rename(object: JsonObject, from: 0 | 1, apiVersion: string): JsonObject {
  const to = from === 0 ? 1 : 0;
  const result = cloneJson(object);
  for (const names of RENAMED) {
    const value = result[names[from]];
    if (value === undefined) continue;
    delete result[names[from]];
    // Optional in the other version, so an empty text is omitted there.
    if (value !== "" || to === 0) result[names[to]] = value;
  }
  result["apiVersion"] = apiVersion;
  return result;
}

function validateCoreEvent(object: JsonObject): FieldError[] {
  return validateNamespace(object, "involvedObject");
}

/** events.k8s.io has more required members than core. */
function validateNewEvent(object: JsonObject): FieldError[] {
  const errors = validateNamespace(object, "regarding");
  for (const member of ["reportingController", "reportingInstance", "action", "reason"]) {
    if (textOf(object, member) === "") {
      errors.push({ type: "FieldValueRequired", field: member, body: "Required value" });
    }
  }
  if (textOf(object, "eventTime") === "") {
    errors.push({ type: "FieldValueRequired", field: "eventTime", body: "Required value" });
  }
  return errors;
}

function validateNamespace(object: JsonObject, member: string): FieldError[] {
  const about = textOf(objectOf(object, member) ?? {}, "namespace");
  const own = textOf(metadataOf(object), "namespace");
  const isRight = about === "" ? own === "default" || own === "kube-system" : about === own;
  if (isRight) return [];
  return [invalid("involvedObject.namespace", about, "does not match event.namespace")];
}
