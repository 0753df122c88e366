import {
  isJsonObject,
  parseApiVersion,
  type ApiObject,
  type JsonObject,
  type JsonValue,
} from "@konverge/core";
import { CURRENT, failed, inProgress, type Readiness } from "./readiness-state.ts";
import { findCondition, objectAt, specOf, statusOf } from "./reported-conditions.ts";
import { workloadRules } from "./workload-readiness.ts";

/** How long a Pod may stay unschedulable before it counts as failed, in ms (kstatus `ScheduleWindow`). */
const SCHEDULE_WINDOW_MS = 15_000;

type Rule = (object: ApiObject, nowMs: number) => Readiness;

/** Rules by kind and group, for kinds with a rule of their own. */
const RULES: Readonly<Record<string, Rule>> = {
  ...workloadRules,
  "Job.batch": jobStarted,
  "Pod.": podReadiness,
  "PersistentVolumeClaim.": (claim) => phaseIs(claim, "Bound"),
  "Namespace.": (namespace) => phaseIs(namespace, "Active"),
  "Service.": serviceReadiness,
  "CustomResourceDefinition.apiextensions.k8s.io": definitionReadiness,
  "ConfigMap.": () => CURRENT,
  "CronJob.batch": () => CURRENT,
  "PodDisruptionBudget.policy": () => CURRENT,
  "Secret.": () => CURRENT,
};

/** Applies the rule of the object's kind; returns undefined for a kind without one. */
export function builtInReadiness(object: ApiObject, nowMs: number): Readiness | undefined {
  const { group } = parseApiVersion(object.apiVersion);
  const id = `${object.kind}.${group}`;
  return Object.hasOwn(RULES, id) ? RULES[id]?.(object, nowMs) : undefined;
}

/** For kstatus a started Job is current; `completionOf` reports whether it has completed. */
function jobStarted(job: ApiObject): Readiness {
  const failure = findCondition(job, "Failed");
  if (failure?.status === "True") return failed(failure.message ?? "has failed");
  if (findCondition(job, "Complete")?.status === "True") return CURRENT;
  if (specOf(job)["suspend"] === true && findCondition(job, "Suspended")?.status === "True") {
    return CURRENT;
  }
  return statusOf(job)["startTime"] === undefined ? inProgress("has not started") : CURRENT;
}

function podReadiness(pod: ApiObject, nowMs: number): Readiness {
  const status = statusOf(pod);
  switch (status["phase"]) {
    // Terminal in either case.
    case "Succeeded":
    case "Failed":
      return CURRENT;
    case "Running": {
      if (findCondition(pod, "Ready")?.status === "True") return CURRENT;
      const crashing = crashingContainers(status["containerStatuses"]);
      if (crashing.length > 0) return failed(`${crashing.join(", ")} in CrashLoopBackOff`);
      return inProgress("is running, but is not ready");
    }
    case "Pending": {
      const scheduled = findCondition(pod, "PodScheduled");
      if (scheduled?.status !== "False" || scheduled.reason !== "Unschedulable") {
        return inProgress("has not started to run");
      }
      const since = scheduled.lastTransitionTime ?? pod.metadata.creationTimestamp ?? "";
      const overAtMs = (Date.parse(since) || nowMs) + SCHEDULE_WINDOW_MS;
      const message = `is unschedulable: ${scheduled.message ?? "no node fits"}`;
      if (nowMs >= overAtMs) return failed(message);
      return { ...inProgress(message), againAtMs: overAtMs };
    }
    default:
      return inProgress("has not started to run");
  }
}

function crashingContainers(statuses: JsonValue | undefined): string[] {
  if (!Array.isArray(statuses)) return [];
  const isCrashing = (status: JsonObject) =>
    objectAt(objectAt(status, "state"), "waiting")["reason"] === "CrashLoopBackOff";
  return statuses
    .filter(isJsonObject)
    .filter(isCrashing)
    .map(({ name }) => (typeof name === "string" ? name : "a container"));
}

function phaseIs(object: ApiObject, wanted: string): Readiness {
  const { phase } = statusOf(object);
  if (phase === wanted) return CURRENT;
  return inProgress(typeof phase === "string" ? `is ${phase}, not ${wanted}` : `is not ${wanted}`);
}

/** As in kstatus. To wait for a load balancer's address, wait for the field. */
function serviceReadiness(service: ApiObject): Readiness {
  const { type, clusterIP } = specOf(service);
  if (type !== "LoadBalancer" || (typeof clusterIP === "string" && clusterIP !== "")) {
    return CURRENT;
  }
  return inProgress("has no cluster IP");
}

function definitionReadiness(definition: ApiObject): Readiness {
  const names = findCondition(definition, "NamesAccepted");
  if (names?.status === "False") return failed(names.message ?? "its names are taken");
  const established = findCondition(definition, "Established");
  if (established?.status === "True") return CURRENT;
  if (established?.status === "False" && established.reason !== "Installing") {
    return failed(established.message ?? "cannot be established");
  }
  return inProgress("is not established");
}
