import type { JsonObject } from "@konverge/core";
import type { FieldError } from "../errors/field-error.ts";
import { objectOf } from "../objects/metadata.ts";
import { defineBuiltinKind } from "./builtin-kind.ts";
import { defaultTemplate, memberOf, validateTemplate } from "./pod-template.ts";
import type { ResourceKind } from "./resource-kind.ts";
import {
  validateReplicas,
  validateReplicaStatus,
  validateSelector,
  validateSelectorUpdate,
} from "./workload-rules.ts";

const COUNTED = ["fullyLabeledReplicas", "readyReplicas", "availableReplicas"];

export const replicaSet: ResourceKind = defineBuiltinKind({
  group: "apps",
  version: "v1",
  kind: "ReplicaSet",
  resource: "replicasets",
  shortNames: ["rs"],
  categories: ["all"],
  definition: "apps.v1.ReplicaSet",
  subresources: ["status", "scale"],
  scale: {
    specReplicas: "spec.replicas",
    statusReplicas: "status.replicas",
    labelSelector: "spec.selector",
  },
  selectableFields: ["status.replicas"],
  generationOf: (object) => object["spec"],
  applyDefaults: (object) => {
    const spec = memberOf(object, "spec");
    spec["replicas"] ??= 1;
    defaultTemplate(spec);
  },
  prepareCreate: (object) => {
    object["status"] = { replicas: 0 };
  },
  validateCreate: validateReplicaSet,
  validateUpdate: (next, live, subresource) =>
    subresource === "status"
      ? validateReplicaStatus(next, COUNTED)
      : [...validateReplicaSet(next), ...validateSelectorUpdate(next, live)],
});

function validateReplicaSet(object: JsonObject): FieldError[] {
  const spec = objectOf(object, "spec") ?? {};
  return [
    ...validateReplicas(spec),
    ...validateSelector(spec, "deployment"),
    ...validateTemplate(spec),
  ];
}
