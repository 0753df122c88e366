import { defined, isJsonObject, jsonEquals, type JsonObject, type JsonValue } from "@konverge/core";
import { forbidden, type FieldError } from "../errors/field-error.ts";
import { objectOf, objectsOf, textOf } from "../objects/metadata.ts";
import { defineBuiltinKind } from "./builtin-kind.ts";
import {
  containersOf,
  defaultPodSpec,
  defaultRequests,
  memberOf,
  validatePodSpec,
} from "./pod-template.ts";
import type { ResourceKind } from "./resource-kind.ts";

/** Added by an admission plugin: a Pod leaves a broken node after five minutes. */
const TOLERATED = ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"];
const MUTABLE = ["activeDeadlineSeconds", "tolerations", "terminationGracePeriodSeconds"];
const FINAL_PHASES = ["Failed", "Succeeded"];

/** Stored as data: no scheduler or kubelet acts on it. */
export const pod: ResourceKind = defineBuiltinKind({
  group: "",
  version: "v1",
  kind: "Pod",
  resource: "pods",
  shortNames: ["po"],
  categories: ["all"],
  definition: "core.v1.Pod",
  returnsDeleted: true,
  subresources: ["status", "eviction"],
  selectableFields: [
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.schedulerName",
    "spec.serviceAccountName",
    "spec.hostNetwork",
    "status.phase",
    "status.podIP",
    "status.nominatedNodeName",
  ],
  generationOf: (object) => object["spec"],
  applyDefaults: (object) => {
    const spec = memberOf(object, "spec");
    defaultPodSpec(spec);
    for (const container of containersOf(spec)) defaultRequests(container);
    spec["enableServiceLinks"] ??= true;
  },
  prepareCreate: (object) => {
    const spec = memberOf(object, "spec");
    object["status"] = { phase: "Pending", qosClass: qualityOfService(spec) };
    spec["priority"] = 0;
    spec["preemptionPolicy"] ??= "PreemptLowerPriority";
    tolerateBrokenNodes(spec);
  },
  prepareUpdate: (next, live, subresource) => {
    if (subresource !== "") return;
    const spec = memberOf(next, "spec");
    const { priority, preemptionPolicy } = objectOf(live, "spec") ?? {};
    for (const [member, value] of Object.entries(defined({ priority, preemptionPolicy }))) {
      spec[member] ??= value;
    }
    tolerateBrokenNodes(spec);
  },
  validateCreate: (object) => validatePodSpec(objectOf(object, "spec") ?? {}, "spec"),
  validateUpdate: (next, live, subresource) =>
    subresource === "status" ? [] : validateFixed(next, live),
  gracePeriodSeconds: (object, requested) => {
    const spec = objectOf(object, "spec") ?? {};
    const phase = textOf(objectOf(object, "status") ?? {}, "phase");
    // Nothing runs yet, or no longer.
    if (textOf(spec, "nodeName") === "" || FINAL_PHASES.includes(phase)) return 0;
    return requested ?? Number(spec["terminationGracePeriodSeconds"] ?? 0);
  },
});

function tolerateBrokenNodes(spec: JsonObject): void {
  const tolerations = objectsOf(spec, "tolerations");
  const isTolerated = (taint: string) =>
    tolerations.some(({ key, effect }) => {
      const fits = effect === undefined || effect === "NoExecute";
      return fits && (key === undefined || key === taint);
    });
  const added = TOLERATED.filter((taint) => !isTolerated(taint)).map((key) => ({
    key,
    operator: "Exists",
    effect: "NoExecute",
    tolerationSeconds: 300,
  }));
  spec["tolerations"] = [...tolerations, ...added];
}

function qualityOfService(spec: JsonObject): string {
  const amounts = (container: JsonObject, member: string): JsonObject => {
    const found = objectOf(objectOf(container, "resources") ?? {}, member) ?? {};
    return Object.fromEntries(
      ["cpu", "memory"].flatMap((name) => {
        const value: JsonValue | undefined = found[name];
        return value === undefined ? [] : [[name, value]];
      }),
    );
  };
  const containers = containersOf(spec);
  const isEmpty = (one: JsonObject) => Object.keys(one).length === 0;
  const has = (container: JsonObject) =>
    !isEmpty(amounts(container, "requests")) || !isEmpty(amounts(container, "limits"));
  if (!containers.some(has)) return "BestEffort";
  const isGuaranteed = containers.every((container) => {
    const limits = amounts(container, "limits");
    return Object.keys(limits).length === 2 && jsonEquals(limits, amounts(container, "requests"));
  });
  return isGuaranteed ? "Guaranteed" : "Burstable";
}

function validateFixed(next: JsonObject, live: JsonObject): FieldError[] {
  const counts = ["containers", "initContainers"].flatMap((name) => {
    const count = (object: JsonObject) => objectsOf(objectOf(object, "spec") ?? {}, name).length;
    const detail = "pod updates may not add or remove containers";
    return count(next) === count(live) ? [] : [forbidden(`spec.${name}`, detail)];
  });
  if (counts.length > 0) return counts;
  if (jsonEquals(fixedPart(next), fixedPart(live))) return [];
  const detail =
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";
  return [forbidden("spec", detail)];
}

function fixedPart(object: JsonObject): JsonObject {
  const withoutImages = (list: JsonValue | undefined): JsonValue =>
    Array.isArray(list)
      ? list.map((one) => (isJsonObject(one) ? { ...one, image: null } : one))
      : [];
  const { containers, initContainers, ...rest } = objectOf(object, "spec") ?? {};
  for (const member of MUTABLE) delete rest[member];
  return {
    ...rest,
    containers: withoutImages(containers),
    initContainers: withoutImages(initContainers),
  };
}
