import type { JsonObject } from "@konverge/core";
import { isTerminating, objectOf, objectsOf, textOf } from "../objects/metadata.ts";
import {
  AGE,
  formatLabels,
  formatSelector,
  integer,
  NAME,
  numberIn,
  orNone,
  since,
  specOf,
  statusOf,
  text,
  wide,
  workloadColumns,
  type Column,
} from "./column.ts";
import { humanDuration } from "./human-duration.ts";

const templateOf = (object: JsonObject) => objectOf(specOf(object), "template") ?? {};
const selector = wide("Selector", (object) => formatSelector(objectOf(specOf(object), "selector")));
const fromStatus = (member: string) => (object: JsonObject) => numberIn(statusOf(object), member);
const ready = text(
  "Ready",
  (object) =>
    `${numberIn(statusOf(object), "readyReplicas")}/${numberIn(specOf(object), "replicas")}`,
);
const workload = workloadColumns(templateOf);

export const deploymentColumns: readonly Column[] = [
  NAME,
  ready,
  text("Up-to-date", fromStatus("updatedReplicas")),
  text("Available", fromStatus("availableReplicas")),
  AGE,
  ...workload,
  selector,
];

export const replicaSetColumns: readonly Column[] = [
  NAME,
  integer("Desired", (object) => numberIn(specOf(object), "replicas")),
  integer("Current", fromStatus("replicas")),
  integer("Ready", fromStatus("readyReplicas")),
  AGE,
  ...workload,
  selector,
];

export const statefulSetColumns: readonly Column[] = [NAME, ready, AGE, ...workload];

export const daemonSetColumns: readonly Column[] = [
  NAME,
  integer("Desired", fromStatus("desiredNumberScheduled")),
  integer("Current", fromStatus("currentNumberScheduled")),
  integer("Ready", fromStatus("numberReady")),
  integer("Up-to-date", fromStatus("updatedNumberScheduled")),
  integer("Available", fromStatus("numberAvailable")),
  text("Node Selector", (object) =>
    formatLabels(objectOf(objectOf(templateOf(object), "spec") ?? {}, "nodeSelector")),
  ),
  AGE,
  ...workload,
  selector,
];

const JOB_STATES: readonly (readonly [condition: string, shown: string])[] = [
  ["Complete", "Complete"],
  ["Failed", "Failed"],
  ["Suspended", "Suspended"],
  ["FailureTarget", "FailureTarget"],
  ["SuccessCriteriaMet", "SuccessCriteriaMet"],
];

export const jobColumns: readonly Column[] = [
  NAME,
  text("Status", (job) => {
    const conditions = objectsOf(statusOf(job), "conditions");
    const isTrue = (wanted: string) =>
      conditions.some(({ type, status }) => type === wanted && status === "True");
    const [, state] = JOB_STATES.find(([condition]) => isTrue(condition)) ?? [];
    if (state === "Complete" || state === "Failed") return state;
    return isTerminating(job) ? "Terminating" : (state ?? "Running");
  }),
  text("Completions", (job) => {
    const { completions, parallelism } = specOf(job);
    const succeeded = numberIn(statusOf(job), "succeeded");
    if (completions !== undefined) return `${succeeded}/${Number(completions)}`;
    const many = Number(parallelism ?? 0);
    return many > 1 ? `${succeeded}/1 of ${many}` : `${succeeded}/1`;
  }),
  text("Duration", (job, nowMs) => {
    const start = textOf(statusOf(job), "startTime");
    const end = textOf(statusOf(job), "completionTime");
    if (start === "") return "";
    return humanDuration((end === "" ? nowMs : Date.parse(end)) - Date.parse(start));
  }),
  AGE,
  ...workload,
  selector,
];

export const cronJobColumns: readonly Column[] = [
  NAME,
  text("Schedule", (object) => textOf(specOf(object), "schedule")),
  text("Timezone", (object) => orNone(textOf(specOf(object), "timeZone"))),
  {
    ...text("Suspend", (object) => (specOf(object)["suspend"] === true ? "True" : "False")),
    type: "boolean",
  },
  integer("Active", (object) => objectsOf(statusOf(object), "active").length),
  text("Last Schedule", (object, nowMs) => {
    const last = textOf(statusOf(object), "lastScheduleTime");
    return last === "" ? "<none>" : since(last, nowMs);
  }),
  AGE,
  ...workloadColumns(
    (object) =>
      objectOf(objectOf(objectOf(specOf(object), "jobTemplate") ?? {}, "spec") ?? {}, "template") ??
      {},
  ),
  wide("Selector", () => "<none>"),
];

export const autoscalerColumns: readonly Column[] = [
  NAME,
  text("Reference", (object) => {
    const target = objectOf(specOf(object), "scaleTargetRef") ?? {};
    return `${textOf(target, "kind")}/${textOf(target, "name")}`;
  }),
  text("Targets", formatTargets),
  text("MinPods", (object) => String(specOf(object)["minReplicas"] ?? "<unset>")),
  text("MaxPods", (object) => numberIn(specOf(object), "maxReplicas")),
  text("Replicas", fromStatus("currentReplicas")),
  AGE,
];

/** Resource metrics by their utilization; the others by their type. */
function formatTargets(object: JsonObject): string {
  const current = objectsOf(statusOf(object), "currentMetrics");
  const metrics = objectsOf(specOf(object), "metrics").map((metric, index) => {
    const resource = objectOf(metric, "resource");
    if (resource === undefined) return `<unknown> (${textOf(metric, "type")})`;
    const target = objectOf(resource, "target") ?? {};
    const reported = objectOf(objectOf(current[index] ?? {}, "resource") ?? {}, "current") ?? {};
    const { averageUtilization: wanted } = target;
    if (wanted === undefined) {
      return `${textOf(reported, "averageValue") || "<unknown>"}/${textOf(target, "averageValue")}`;
    }
    const { averageUtilization: now } = reported;
    const shown = now === undefined ? "<unknown>" : `${Number(now)}%`;
    return `${textOf(resource, "name")}: ${shown}/${Number(wanted)}%`;
  });
  return metrics.length === 0 ? "<none>" : metrics.join(", ");
}
