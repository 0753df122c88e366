import { jsonEquals, type JsonObject } from "@konverge/core";
import { forbidden, required, type FieldError } from "../errors/field-error.ts";
import {
  finalizersOf,
  formatTime,
  metadataOf,
  objectOf,
  stringsOf,
  textOf,
} from "../objects/metadata.ts";
import { defineBuiltinKind } from "./builtin-kind.ts";
import { memberOf } from "./pod-template.ts";
import type { ResourceKind } from "./resource-kind.ts";

export const persistentVolume: ResourceKind = defineBuiltinKind({
  group: "",
  version: "v1",
  kind: "PersistentVolume",
  resource: "persistentvolumes",
  shortNames: ["pv"],
  namespaced: false,
  definition: "core.v1.PersistentVolume",
  subresources: ["status"],
  applyDefaults: (object) => {
    const spec = memberOf(object, "spec");
    spec["persistentVolumeReclaimPolicy"] ??= "Retain";
    spec["volumeMode"] ??= "Filesystem";
    memberOf(object, "status")["phase"] ??= "Pending";
    const hostPath = objectOf(spec, "hostPath");
    if (hostPath !== undefined) hostPath["type"] ??= "";
  },
  returnsDeleted: true,
  prepareCreate: (object) => {
    protect(object, "kubernetes.io/pv-protection");
    object["status"] = { phase: "Pending", lastPhaseTransitionTime: formatTime(Date.now()) };
  },
  prepareUpdate: (next, live, subresource) => {
    if (subresource !== "status") return;
    const status = memberOf(next, "status");
    const before = objectOf(live, "status") ?? {};
    const isSame = status["phase"] === before["phase"];
    const time = isSame ? before["lastPhaseTransitionTime"] : formatTime(Date.now());
    if (time !== undefined) status["lastPhaseTransitionTime"] = time;
  },
  validateCreate: validateVolume,
  validateUpdate: (next, _live, subresource) =>
    subresource === "status" ? [] : validateVolume(next),
});

export const persistentVolumeClaim: ResourceKind = defineBuiltinKind({
  group: "",
  version: "v1",
  kind: "PersistentVolumeClaim",
  resource: "persistentvolumeclaims",
  shortNames: ["pvc"],
  definition: "core.v1.PersistentVolumeClaim",
  subresources: ["status"],
  applyDefaults: (object) => {
    const spec = memberOf(object, "spec");
    spec["volumeMode"] ??= "Filesystem";
    memberOf(object, "status")["phase"] ??= "Pending";
  },
  returnsDeleted: true,
  prepareCreate: (object) => {
    protect(object, "kubernetes.io/pvc-protection");
    object["status"] = { phase: "Pending" };
  },
  validateCreate: validateClaim,
  validateUpdate: (next, live, subresource) =>
    subresource === "status" ? [] : [...validateClaim(next), ...validateFixed(next, live)],
});

/** Added by an admission plugin: a controller would remove the finalizer once nothing uses the storage. */
function protect(object: JsonObject, finalizer: string): void {
  metadataOf(object)["finalizers"] = [...new Set([...finalizersOf(object), finalizer])];
}

function validateVolume(object: JsonObject): FieldError[] {
  const spec = objectOf(object, "spec") ?? {};
  return [
    ...validateAccess(spec),
    ...(objectOf(spec, "capacity") === undefined ? [required("spec.capacity")] : []),
  ];
}

function validateClaim(object: JsonObject): FieldError[] {
  const spec = objectOf(object, "spec") ?? {};
  const requests = objectOf(objectOf(spec, "resources") ?? {}, "requests") ?? {};
  return [
    ...validateAccess(spec),
    ...(requests["storage"] === undefined ? [required("spec.resources[storage]")] : []),
  ];
}

function validateAccess(spec: JsonObject): FieldError[] {
  if (stringsOf(spec, "accessModes").length > 0) return [];
  return [required("spec.accessModes", "at least 1 access mode is required")];
}

function validateFixed(next: JsonObject, live: JsonObject): FieldError[] {
  const fixed = (object: JsonObject): JsonObject => {
    const { volumeName, resources, ...rest } = objectOf(object, "spec") ?? {};
    const isBound = textOf(objectOf(live, "status") ?? {}, "phase") === "Bound";
    return isBound
      ? { ...rest, volumeName: volumeName ?? null }
      : { ...rest, resources: resources ?? null };
  };
  if (jsonEquals(fixed(next), fixed(live))) return [];
  const detail =
    "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims";
  return [forbidden("spec", detail)];
}
