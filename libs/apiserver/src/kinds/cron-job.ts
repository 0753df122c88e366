import type { JsonObject } from "@konverge/core";
import { invalid, notSupported, required, type FieldError } from "../errors/field-error.ts";
import { objectOf, textOf } from "../objects/metadata.ts";
import { defineBuiltinKind } from "./builtin-kind.ts";
import { validateJobSpec } from "./job.ts";
import { defaultTemplate, memberOf } from "./pod-template.ts";
import type { ResourceKind } from "./resource-kind.ts";

const POLICIES = ["Allow", "Forbid", "Replace"];

export const cronJob: ResourceKind = defineBuiltinKind({
  group: "batch",
  version: "v1",
  kind: "CronJob",
  resource: "cronjobs",
  shortNames: ["cj"],
  categories: ["all"],
  definition: "batch.v1.CronJob",
  subresources: ["status"],
  generationOf: (object) => object["spec"],
  applyDefaults: (object) => {
    const spec = memberOf(object, "spec");
    spec["concurrencyPolicy"] ??= "Allow";
    spec["suspend"] ??= false;
    spec["successfulJobsHistoryLimit"] ??= 3;
    spec["failedJobsHistoryLimit"] ??= 1;
    const template = memberOf(spec, "jobTemplate");
    memberOf(template, "metadata");
    defaultTemplate(memberOf(template, "spec"));
  },
  prepareCreate: (object) => {
    object["status"] = {};
  },
  validateCreate: validateCronJob,
  validateUpdate: (next, _live, subresource) =>
    subresource === "status" ? [] : validateCronJob(next),
});

function validateCronJob(object: JsonObject): FieldError[] {
  const spec = objectOf(object, "spec") ?? {};
  const policy = textOf(spec, "concurrencyPolicy");
  const jobSpec = objectOf(objectOf(spec, "jobTemplate") ?? {}, "spec") ?? {};
  return [
    ...validateSchedule(textOf(spec, "schedule")),
    ...(POLICIES.includes(policy)
      ? []
      : [notSupported("spec.concurrencyPolicy", policy, POLICIES)]),
    ...validateJobSpec(jobSpec, "spec.jobTemplate.spec"),
  ];
}

/** Counts the fields of a schedule; their content is not validated. */
function validateSchedule(schedule: string): FieldError[] {
  if (schedule === "") return [required("spec.schedule")];
  const fields = schedule.split(/\s+/).filter((field) => field !== "");
  if (fields.length === 5 || /^(@|TZ=|CRON_TZ=)/.test(schedule)) return [];
  const detail = `expected exactly 5 fields, found ${fields.length}: [${fields.join(" ")}]`;
  return [invalid("spec.schedule", schedule, detail)];
}
