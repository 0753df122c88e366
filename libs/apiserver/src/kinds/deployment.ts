import type { JsonObject } from "@konverge/core";
import { notSupported, type FieldError } from "../errors/field-error.ts";
import { metadataOf, objectOf, textOf } from "../objects/metadata.ts";
import { defineBuiltinKind } from "./builtin-kind.ts";
import {
  validateReplicas,
  validateReplicaStatus,
  validateSelector,
  validateSelectorUpdate,
} from "./workload-rules.ts";
import { defaultTemplate, validateTemplate } from "./pod-template.ts";
import type { ResourceKind } from "./resource-kind.ts";

const COUNTED = ["updatedReplicas", "readyReplicas", "availableReplicas"];

export const deployment: ResourceKind = defineBuiltinKind({
  group: "apps",
  version: "v1",
  kind: "Deployment",
  resource: "deployments",
  shortNames: ["deploy"],
  categories: ["all"],
  definition: "apps.v1.Deployment",
  subresources: ["status", "scale"],
  scale: {
    specReplicas: "spec.replicas",
    statusReplicas: "status.replicas",
    labelSelector: "spec.selector",
  },
  statusKeepsMetadata: ["labels"],
  // A Deployment's annotations are copied to its ReplicaSets, so they count for its generation.
  generationOf: (object) => [object["spec"], metadataOf(object)["annotations"]],
  applyDefaults,
  prepareCreate: (object) => {
    object["status"] = {};
  },
  validateCreate: validateDeployment,
  validateUpdate: (next, live, subresource) => {
    if (subresource === "status") return validateReplicaStatus(next, COUNTED);
    return [...validateDeployment(next), ...validateSelectorUpdate(next, live)];
  },
});

function applyDefaults(object: JsonObject): void {
  const spec = objectOf(object, "spec") ?? {};
  object["spec"] = spec;
  object["status"] ??= {};
  spec["replicas"] ??= 1;
  spec["strategy"] ??= {};
  const strategy = objectOf(spec, "strategy");
  if (strategy !== undefined) {
    strategy["type"] ??= "RollingUpdate";
    if (strategy["type"] === "RollingUpdate") {
      const rolling = objectOf(strategy, "rollingUpdate") ?? {};
      rolling["maxUnavailable"] ??= "25%";
      rolling["maxSurge"] ??= "25%";
      strategy["rollingUpdate"] = rolling;
    }
  }
  spec["revisionHistoryLimit"] ??= 10;
  spec["progressDeadlineSeconds"] ??= 600;
  defaultTemplate(spec);
}

function validateDeployment(object: JsonObject): FieldError[] {
  const spec = objectOf(object, "spec") ?? {};
  const errors = [
    ...validateReplicas(spec),
    ...validateSelector(spec, "deployment"),
    ...validateTemplate(spec),
  ];
  const type = textOf(objectOf(spec, "strategy") ?? {}, "type");
  if (type !== "RollingUpdate" && type !== "Recreate") {
    errors.push(notSupported("spec.strategy.type", type, ["Recreate", "RollingUpdate"]));
  }
  return errors;
}
