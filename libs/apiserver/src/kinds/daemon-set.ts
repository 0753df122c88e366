import { jsonEquals, type JsonObject } from "@konverge/core";
import type { FieldError } from "../errors/field-error.ts";
import { metadataOf, objectOf } from "../objects/metadata.ts";
import { defineBuiltinKind } from "./builtin-kind.ts";
import { defaultTemplate, memberOf, validateTemplate } from "./pod-template.ts";
import type { ResourceKind } from "./resource-kind.ts";
import { validateSelector, validateSelectorUpdate } from "./workload-rules.ts";

const TEMPLATE_GENERATION = "deprecated.daemonset.template.generation";

export const daemonSet: ResourceKind = defineBuiltinKind({
  group: "apps",
  version: "v1",
  kind: "DaemonSet",
  resource: "daemonsets",
  shortNames: ["ds"],
  categories: ["all"],
  definition: "apps.v1.DaemonSet",
  subresources: ["status"],
  generationOf: (object) => object["spec"],
  applyDefaults: (object) => {
    const spec = memberOf(object, "spec");
    const strategy = memberOf(spec, "updateStrategy");
    strategy["type"] ??= "RollingUpdate";
    if (strategy["type"] === "RollingUpdate") {
      const rolling = memberOf(strategy, "rollingUpdate");
      rolling["maxUnavailable"] ??= 1;
      rolling["maxSurge"] ??= 0;
    }
    spec["revisionHistoryLimit"] ??= 10;
    defaultTemplate(spec);
    if (annotationOf(object) === undefined) countTemplate(object, 0);
  },
  prepareCreate: (object) => {
    countTemplate(object, 1);
    object["status"] = {
      currentNumberScheduled: 0,
      numberMisscheduled: 0,
      desiredNumberScheduled: 0,
      numberReady: 0,
    };
  },
  prepareUpdate: (next, live) => {
    const before = Number(annotationOf(live));
    const template = (object: JsonObject) => objectOf(objectOf(object, "spec") ?? {}, "template");
    const isSame = jsonEquals(template(next), template(live));
    countTemplate(next, isSame ? before : before + 1);
  },
  validateCreate: validateDaemonSet,
  validateUpdate: (next, live, subresource) =>
    subresource === "status"
      ? []
      : [...validateDaemonSet(next), ...validateSelectorUpdate(next, live)],
});

const annotationOf = (object: JsonObject) =>
  objectOf(metadataOf(object), "annotations")?.[TEMPLATE_GENERATION];

function countTemplate(object: JsonObject, generation: number): void {
  memberOf(metadataOf(object), "annotations")[TEMPLATE_GENERATION] = String(generation);
}

function validateDaemonSet(object: JsonObject): FieldError[] {
  const spec = objectOf(object, "spec") ?? {};
  return [...validateSelector(spec, "daemonset"), ...validateTemplate(spec)];
}
