import { isJsonObject, jsonEquals, type JsonObject } from "@konverge/core";
import { invalid, required, type FieldError } from "../errors/field-error.ts";
import { metadataOf, objectOf } from "../objects/metadata.ts";

/**
 * Validates the selector of a workload against the labels of its Pod template.
 * @param whose the kind in the text for an empty selector
 */
export function validateSelector(spec: JsonObject, whose: string): FieldError[] {
  const selector = objectOf(spec, "selector");
  if (selector === undefined) return [required("spec.selector")];
  if (isEmptySelector(selector)) {
    return [invalid("spec.selector", selector, `empty selector is invalid for ${whose}`)];
  }
  const labels = objectOf(metadataOf(objectOf(spec, "template") ?? {}), "labels") ?? {};
  const wanted = objectOf(selector, "matchLabels") ?? {};
  if (Object.entries(wanted).every(([key, value]) => labels[key] === value)) return [];
  return [
    invalid("spec.template.metadata.labels", labels, "`selector` does not match template `labels`"),
  ];
}

/** Returns true for a selector without requirements. */
function isEmptySelector(selector: JsonObject): boolean {
  const { matchExpressions: expressions, matchLabels: labels } = selector;
  const hasLabels = isJsonObject(labels) && Object.keys(labels).length > 0;
  return !hasLabels && !(Array.isArray(expressions) && expressions.length > 0);
}

/** Requires that the selector of a workload stays as it was created. */
export function validateSelectorUpdate(next: JsonObject, live: JsonObject): FieldError[] {
  const selector = objectOf(next, "spec")?.["selector"];
  if (jsonEquals(selector, objectOf(live, "spec")?.["selector"])) return [];
  return [invalid("spec.selector", selector ?? null, "field is immutable")];
}

/** Validates the number of replicas of a workload. */
export function validateReplicas(spec: JsonObject): FieldError[] {
  const replicas = Number(spec["replicas"] ?? 0);
  if (replicas >= 0) return [];
  return [invalid("spec.replicas", replicas, "must be greater than or equal to 0")];
}

/**
 * Validates the numbers in the status of a workload: none is negative, and none is larger than the one that includes it.
 * @param ready the text for the number of ready replicas
 */
export function validateReplicaStatus(
  object: JsonObject,
  members: readonly string[],
  ready = "readyReplicas",
): FieldError[] {
  const status = objectOf(object, "status") ?? {};
  const numberOf = (member: string) => Number(status[member] ?? 0);
  const errors = ["observedGeneration", "replicas", ...members]
    .filter((member) => numberOf(member) < 0)
    .map((member) =>
      invalid(`status.${member}`, numberOf(member), "must be greater than or equal to 0"),
    );
  for (const member of members) {
    if (numberOf(member) <= numberOf("replicas")) continue;
    const detail = "cannot be greater than status.replicas";
    errors.push(invalid(`status.${member}`, numberOf(member), detail));
  }
  const available = numberOf("availableReplicas");
  if (available > numberOf("readyReplicas")) {
    errors.push(invalid("status.availableReplicas", available, `cannot be greater than ${ready}`));
  }
  return errors;
}
