import { isJsonObject, type JsonObject, jsonEquals } from "@konverge/core";
import { invalid, notSupported, required, type FieldError } from "../errors/field-error.ts";
import { metadataOf, objectOf, objectsOf, textOf } from "../objects/metadata.ts";
import { defineBuiltinKind } from "./builtin-kind.ts";
import { defaultPodTemplate } from "./pod-template.ts";
import type { ResourceKind } from "./resource-kind.ts";

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
    if (subresource === "status") return validateStatus(next);
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
  const template = objectOf(spec, "template") ?? {};
  spec["template"] = template;
  defaultPodTemplate(template);
}

function validateDeployment(object: JsonObject): FieldError[] {
  const spec = objectOf(object, "spec") ?? {};
  const errors: FieldError[] = [];
  const replicas = Number(spec["replicas"]);
  if (replicas < 0) {
    errors.push(invalid("spec.replicas", replicas, "must be greater than or equal to 0"));
  }
  const selector = objectOf(spec, "selector");
  if (selector === undefined) errors.push(required("spec.selector"));
  else if (isEmptySelector(selector)) {
    errors.push(invalid("spec.selector", selector, "empty selector is invalid for deployment"));
  }
  const template = objectOf(spec, "template") ?? {};
  errors.push(...validateTemplate(template, selector));
  const type = textOf(objectOf(spec, "strategy") ?? {}, "type");
  if (type !== "RollingUpdate" && type !== "Recreate") {
    errors.push(notSupported("spec.strategy.type", type, ["Recreate", "RollingUpdate"]));
  }
  return errors;
}

function validateTemplate(template: JsonObject, selector: JsonObject | undefined): FieldError[] {
  const errors: FieldError[] = [];
  const labels = objectOf(metadataOf(template), "labels") ?? {};
  const wanted = objectOf(selector ?? {}, "matchLabels") ?? {};
  const matches = Object.entries(wanted).every(([key, value]) => labels[key] === value);
  if (selector !== undefined && !isEmptySelector(selector) && !matches) {
    errors.push(
      invalid(
        "spec.template.metadata.labels",
        labels,
        "`selector` does not match template `labels`",
      ),
    );
  }
  const containers = objectsOf(objectOf(template, "spec") ?? {}, "containers");
  if (containers.length === 0) errors.push(required("spec.template.spec.containers"));
  for (const [index, container] of containers.entries()) {
    const path = `spec.template.spec.containers[${index}]`;
    if (textOf(container, "name") === "") errors.push(required(`${path}.name`));
    if (textOf(container, "image") === "") errors.push(required(`${path}.image`));
  }
  return errors;
}

function validateSelectorUpdate(next: JsonObject, live: JsonObject): FieldError[] {
  const selector = objectOf(next, "spec")?.["selector"];
  if (jsonEquals(selector, objectOf(live, "spec")?.["selector"])) return [];
  return [invalid("spec.selector", selector ?? null, "field is immutable")];
}

function validateStatus(object: JsonObject): FieldError[] {
  const status = objectOf(object, "status") ?? {};
  return ["observedGeneration", "replicas", "updatedReplicas", "readyReplicas", "availableReplicas"]
    .filter((member) => Number(status[member] ?? 0) < 0)
    .map((member) =>
      invalid(`status.${member}`, Number(status[member]), "must be greater than or equal to 0"),
    );
}

function isEmptySelector(selector: JsonObject): boolean {
  const expressions = selector["matchExpressions"];
  const labels = selector["matchLabels"];
  const hasLabels = isJsonObject(labels) && Object.keys(labels).length > 0;
  return !hasLabels && !(Array.isArray(expressions) && expressions.length > 0);
}
