import { jsonEquals, type JsonObject } from "@konverge/core";
import { forbidden, notSupported, type FieldError } from "../errors/field-error.ts";
import { objectOf, objectsOf, textOf } from "../objects/metadata.ts";
import { defineBuiltinKind } from "./builtin-kind.ts";
import { defaultTemplate, memberOf, validateTemplate } from "./pod-template.ts";
import type { ResourceKind } from "./resource-kind.ts";
import { validateReplicas, validateReplicaStatus, validateSelector } from "./workload-rules.ts";

/** The members of a spec that may change. */
const MUTABLE = new Set([
  "replicas",
  "ordinals",
  "template",
  "updateStrategy",
  "revisionHistoryLimit",
  "persistentVolumeClaimRetentionPolicy",
  "minReadySeconds",
]);

const COUNTED = ["readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"];

export const statefulSet: ResourceKind = defineBuiltinKind({
  group: "apps",
  version: "v1",
  kind: "StatefulSet",
  resource: "statefulsets",
  shortNames: ["sts"],
  categories: ["all"],
  definition: "apps.v1.StatefulSet",
  subresources: ["status", "scale"],
  scale: {
    specReplicas: "spec.replicas",
    statusReplicas: "status.replicas",
    labelSelector: "spec.selector",
  },
  generationOf: (object) => object["spec"],
  applyDefaults,
  prepareCreate: (object) => {
    object["status"] = { replicas: 0, availableReplicas: 0 };
  },
  validateCreate: validateStatefulSet,
  validateUpdate: (next, live, subresource) =>
    subresource === "status"
      ? validateReplicaStatus(next, COUNTED, "status.readyReplicas")
      : [...validateStatefulSet(next), ...validateFixed(next, live)],
});

function applyDefaults(object: JsonObject): void {
  const spec = memberOf(object, "spec");
  const status = memberOf(object, "status");
  status["availableReplicas"] ??= 0;
  spec["podManagementPolicy"] ??= "OrderedReady";
  const strategy = memberOf(spec, "updateStrategy");
  if (strategy["type"] === undefined) {
    strategy["type"] = "RollingUpdate";
    memberOf(strategy, "rollingUpdate");
  }
  const rolling = objectOf(strategy, "rollingUpdate");
  if (strategy["type"] === "RollingUpdate" && rolling !== undefined) rolling["partition"] ??= 0;
  const retention = memberOf(spec, "persistentVolumeClaimRetentionPolicy");
  retention["whenDeleted"] ??= "Retain";
  retention["whenScaled"] ??= "Retain";
  spec["replicas"] ??= 1;
  spec["revisionHistoryLimit"] ??= 10;
  for (const claim of objectsOf(spec, "volumeClaimTemplates")) {
    claim["apiVersion"] ??= "v1";
    claim["kind"] ??= "PersistentVolumeClaim";
    memberOf(claim, "spec")["volumeMode"] ??= "Filesystem";
    memberOf(claim, "status")["phase"] ??= "Pending";
  }
  defaultTemplate(spec);
}

function validateStatefulSet(object: JsonObject): FieldError[] {
  const spec = objectOf(object, "spec") ?? {};
  const policy = textOf(spec, "podManagementPolicy");
  const isKnown = policy === "OrderedReady" || policy === "Parallel";
  return [
    ...(isKnown
      ? []
      : [notSupported("spec.podManagementPolicy", policy, ["OrderedReady", "Parallel"])]),
    ...validateReplicas(spec),
    ...validateSelector(spec, "statefulset"),
    ...validateTemplate(spec),
  ];
}

function validateFixed(next: JsonObject, live: JsonObject): FieldError[] {
  const fixed = (object: JsonObject) =>
    Object.fromEntries(
      Object.entries(objectOf(object, "spec") ?? {}).filter(([key]) => !MUTABLE.has(key)),
    );
  if (jsonEquals(fixed(next), fixed(live))) return [];
  const detail =
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden";
  return [forbidden("spec", detail)];
}
