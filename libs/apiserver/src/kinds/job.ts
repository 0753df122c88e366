import { cloneJson, jsonEquals, type JsonObject } from "@konverge/core";
import { invalid, notSupported, required, type FieldError } from "../errors/field-error.ts";
import { metadataOf, nameOf, objectOf, textOf, uidOf } from "../objects/metadata.ts";
import { defineBuiltinKind } from "./builtin-kind.ts";
import { validateJobStatus } from "./job-status.ts";
import { defaultTemplate, memberOf, validatePodSpec } from "./pod-template.ts";
import type { ResourceKind } from "./resource-kind.ts";

const MAX_INT32 = 2_147_483_647;
const RESTART_POLICIES = ["OnFailure", "Never"];

export const job: ResourceKind = defineBuiltinKind({
  group: "batch",
  version: "v1",
  kind: "Job",
  resource: "jobs",
  categories: ["all"],
  definition: "batch.v1.Job",
  subresources: ["status"],
  selectableFields: ["status.successful"],
  deletesDependentsByDefault: false,
  generationOf: (object) => object["spec"],
  applyDefaults: (object) => {
    const spec = memberOf(object, "spec");
    defaultJobSpec(spec);
    spec["manualSelector"] ??= false;
    const labels = objectOf(metadataOf(memberOf(spec, "template")), "labels");
    if (labels !== undefined) metadataOf(object)["labels"] ??= cloneJson(labels);
  },
  prepareCreate: (object) => {
    object["status"] = {};
    const spec = objectOf(object, "spec") ?? {};
    if (spec["manualSelector"] !== true) selectByUid(object, spec);
  },
  validateCreate: (object) => validateJobSpec(objectOf(object, "spec") ?? {}, "spec"),
  validateUpdate: (next, live, subresource) => {
    if (subresource === "status") return validateJobStatus(next, live);
    const spec = objectOf(next, "spec") ?? {};
    const before = objectOf(live, "spec") ?? {};
    return [...validateJobSpec(spec, "spec"), ...validateFixed(spec, before)];
  },
});

/** Sets the defaults that a CronJob's template does not have. */
function defaultJobSpec(spec: JsonObject): void {
  if (spec["parallelism"] === undefined) spec["completions"] ??= 1;
  spec["parallelism"] ??= 1;
  spec["backoffLimit"] ??= spec["backoffLimitPerIndex"] === undefined ? 6 : MAX_INT32;
  spec["completionMode"] ??= "NonIndexed";
  spec["suspend"] ??= false;
  spec["podReplacementPolicy"] ??=
    spec["podFailurePolicy"] === undefined ? "TerminatingOrFailed" : "Failed";
  defaultTemplate(spec);
}

/** The Pods of a Job are found by a label with its uid. */
function selectByUid(object: JsonObject, spec: JsonObject): void {
  const metadata = metadataOf(memberOf(spec, "template"));
  const [uid, name] = [uidOf(object), nameOf(object)];
  metadata["labels"] = {
    ...objectOf(metadata, "labels"),
    "batch.kubernetes.io/controller-uid": uid,
    "batch.kubernetes.io/job-name": name,
    "controller-uid": uid,
    "job-name": name,
  };
  metadataOf(object)["labels"] ??= cloneJson(metadata["labels"]);
  spec["selector"] = { matchLabels: { "batch.kubernetes.io/controller-uid": uid } };
}

/** Validates the spec of a Job, or of a CronJob's template, at `path`. */
export function validateJobSpec(spec: JsonObject, path: string): FieldError[] {
  const podSpec = objectOf(objectOf(spec, "template") ?? {}, "spec") ?? {};
  const place = `${path}.template.spec`;
  const errors = validatePodSpec(podSpec, place);
  for (const member of ["parallelism", "completions", "backoffLimit", "activeDeadlineSeconds"]) {
    const value = Number(spec[member] ?? 0);
    if (value < 0) {
      errors.push(invalid(`${path}.${member}`, value, "must be greater than or equal to 0"));
    }
  }
  const policy = textOf(podSpec, "restartPolicy");
  if (policy === "Always") {
    errors.push(required(`${place}.restartPolicy`, 'valid values: "OnFailure", "Never"'));
  } else if (!RESTART_POLICIES.includes(policy)) {
    errors.push(notSupported(`${place}.restartPolicy`, policy, RESTART_POLICIES));
  }
  return errors;
}

function validateFixed(spec: JsonObject, before: JsonObject): FieldError[] {
  return ["completions", "selector", "template", "completionMode"]
    .filter((member) => !jsonEquals(spec[member], before[member]))
    .map((member) => invalid(`spec.${member}`, spec[member] ?? null, "field is immutable"));
}
