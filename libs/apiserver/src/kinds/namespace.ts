import { forbidden } from "../errors/field-error.ts";
import { dnsLabelErrors, type JsonObject } from "@konverge/core";
import {
  isTerminating,
  metadataOf,
  nameOf,
  objectOf,
  setOrDelete,
  stringsOf,
} from "../objects/metadata.ts";
import { defineBuiltinKind } from "./builtin-kind.ts";
import type { ResourceKind } from "./resource-kind.ts";

const NAME_LABEL = "kubernetes.io/metadata.name";
/** Namespaces that cannot be deleted. */
export const PROTECTED_NAMESPACES: ReadonlySet<string> = new Set([
  "default",
  "kube-public",
  "kube-system",
]);

/**
 * A namespace's deletion stops where that of a bare kube-apiserver stops: marked and Terminating, its content
 * untouched. A controller must empty `spec.finalizers` through the finalize subresource.
 */
export const namespace: ResourceKind = defineBuiltinKind({
  group: "",
  version: "v1",
  kind: "Namespace",
  resource: "namespaces",
  shortNames: ["ns"],
  namespaced: false,
  definition: "core.v1.Namespace",
  subresources: ["status", "finalize"],
  selectableFields: ["status.phase"],
  nameErrors: dnsLabelErrors,
  applyDefaults: (object) => {
    const metadata = metadataOf(object);
    if (nameOf(object) !== "" && metadata["deletionTimestamp"] === undefined) {
      metadata["labels"] = { ...objectOf(metadata, "labels"), [NAME_LABEL]: nameOf(object) };
    }
  },
  prepareCreate: (object) => {
    const finalizers = stringsOf(objectOf(object, "spec") ?? {}, "finalizers");
    if (!finalizers.includes("kubernetes")) finalizers.push("kubernetes");
    object["spec"] = { ...objectOf(object, "spec"), finalizers };
    object["status"] = { phase: "Active" };
    const metadata = metadataOf(object);
    metadata["labels"] = { ...objectOf(metadata, "labels"), [NAME_LABEL]: nameOf(object) };
  },
  prepareUpdate: (next, live, subresource) => {
    // Only the finalize subresource may change these.
    if (subresource !== "finalize") setOrDelete(next, "spec", live["spec"]);
    if (subresource !== "status") setOrDelete(next, "status", live["status"]);
  },
  validateUpdate: (next, live, subresource) => {
    const phase = objectOf(next, "status")?.["phase"];
    if (subresource !== "status" || isTerminating(live) || phase !== "Terminating") return [];
    return [
      forbidden("status.phase", "may only be 'Terminating' if `deletionTimestamp` is not empty"),
    ];
  },
});

/** Returns true once nothing blocks the deletion of a namespace. */
export function isReleased(object: JsonObject): boolean {
  return stringsOf(objectOf(object, "spec") ?? {}, "finalizers").length === 0;
}
