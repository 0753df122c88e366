import type { ApiObject, JsonObject } from "@konverge/core";
import { CURRENT, failed, inProgress, type Readiness } from "./readiness-state.ts";
import { findCondition, objectAt, specOf, statusOf } from "./reported-conditions.ts";

/** The value of `progressDeadlineSeconds` for no deadline. */
const NO_DEADLINE = 2_147_483_647;

/** kstatus rules for workloads with replicas (core.go), by kind and group. */
export const workloadRules: Readonly<Record<string, (object: ApiObject) => Readiness>> = {
  "Deployment.apps": onceSeen(deployment),
  "StatefulSet.apps": onceSeen(statefulSet),
  "DaemonSet.apps": onceSeen(daemonSet),
  "ReplicaSet.apps": onceSeen(replicaSet),
};

/**
 * Stricter than kstatus, which reports a StatefulSet of 0 replicas as current before its controller has observed it.
 */
function onceSeen(rule: (object: ApiObject) => Readiness): (object: ApiObject) => Readiness {
  return (object) =>
    statusOf(object)["observedGeneration"] === undefined
      ? inProgress("its controller has not observed it")
      : rule(object);
}

/** One count that must reach another, and the message if it has not. */
type Step = readonly [holds: boolean, message: string];

function firstMissing(steps: readonly Step[]): Readiness {
  const missing = steps.find(([holds]) => !holds);
  return missing === undefined ? CURRENT : inProgress(missing[1]);
}

function deployment(object: ApiObject): Readiness {
  const progressing = findCondition(object, "Progressing");
  if (progressing?.reason === "ProgressDeadlineExceeded") {
    return failed(progressing.message ?? "has not progressed within its deadline");
  }
  const spec = specOf(object);
  const wanted = numberAt(spec, "replicas", 1);
  const { replicas, updatedReplicas, availableReplicas, readyReplicas } = counts(object);
  const deadline = numberAt(spec, "progressDeadlineSeconds", NO_DEADLINE);
  return firstMissing([
    [wanted <= replicas, `${replicas} of ${wanted} created`],
    [wanted <= updatedReplicas, `${updatedReplicas} of ${wanted} updated`],
    [replicas <= wanted, `${replicas - wanted} old Pods remaining`],
    [updatedReplicas <= availableReplicas, `${availableReplicas} of ${updatedReplicas} available`],
    [wanted <= readyReplicas, `${readyReplicas} of ${wanted} ready`],
    [
      deadline === NO_DEADLINE ||
        (progressing?.status === "True" && progressing.reason === "NewReplicaSetAvailable"),
      "its new ReplicaSet is not available",
    ],
    [findCondition(object, "Available")?.status === "True", "is not available"],
  ]);
}

function statefulSet(object: ApiObject): Readiness {
  const spec = specOf(object);
  const strategy = objectAt(spec, "updateStrategy");
  if (strategy["type"] === "OnDelete") return CURRENT;
  const wanted = numberAt(spec, "replicas", 1);
  const { replicas, readyReplicas, currentReplicas, updatedReplicas } = counts(object);
  const steps: Step[] = [
    [wanted <= replicas, `${replicas} of ${wanted} created`],
    [wanted <= readyReplicas, `${readyReplicas} of ${wanted} ready`],
    [replicas <= wanted, `${replicas - wanted} Pods too many`],
  ];
  const { partition } = objectAt(strategy, "rollingUpdate");
  if (typeof partition === "number" && partition > 0) {
    const updating = Math.max(0, wanted - partition);
    steps.push([updating <= updatedReplicas, `${updatedReplicas} of ${updating} updated`]);
    return firstMissing(steps);
  }
  const { currentRevision, updateRevision } = statusOf(object);
  return firstMissing([
    ...steps,
    [wanted <= currentReplicas, `${currentReplicas} of ${wanted} at its current revision`],
    [currentRevision === updateRevision, "its new revision is not rolled out"],
  ]);
}

function daemonSet(object: ApiObject): Readiness {
  const status = statusOf(object);
  if (typeof status["desiredNumberScheduled"] !== "number") {
    return inProgress("its number of nodes is not counted yet");
  }
  const wanted = status["desiredNumberScheduled"];
  const of = (field: string) => numberAt(status, field, 0);
  return firstMissing([
    [
      wanted <= of("currentNumberScheduled"),
      `${of("currentNumberScheduled")} of ${wanted} created`,
    ],
    [
      wanted <= of("updatedNumberScheduled"),
      `${of("updatedNumberScheduled")} of ${wanted} updated`,
    ],
    [wanted <= of("numberAvailable"), `${of("numberAvailable")} of ${wanted} available`],
    [wanted <= of("numberReady"), `${of("numberReady")} of ${wanted} ready`],
  ]);
}

function replicaSet(object: ApiObject): Readiness {
  const failure = findCondition(object, "ReplicaFailure");
  if (failure?.status === "True") return inProgress(failure.message ?? "cannot create its Pods");
  const wanted = numberAt(specOf(object), "replicas", 1);
  const { replicas, fullyLabeledReplicas, availableReplicas, readyReplicas } = counts(object);
  return firstMissing([
    [wanted <= fullyLabeledReplicas, `${fullyLabeledReplicas} of ${wanted} labelled`],
    [wanted <= availableReplicas, `${availableReplicas} of ${wanted} available`],
    [wanted <= readyReplicas, `${readyReplicas} of ${wanted} ready`],
    [replicas <= wanted, `${replicas - wanted} Pods too many`],
  ]);
}

const COUNTS = [
  "replicas",
  "updatedReplicas",
  "availableReplicas",
  "readyReplicas",
  "currentReplicas",
  "fullyLabeledReplicas",
] as const;

/** The counts of the status; a missing count is 0. */
function counts(object: ApiObject): Record<(typeof COUNTS)[number], number> {
  const status = statusOf(object);
  return Object.fromEntries(COUNTS.map((name) => [name, numberAt(status, name, 0)])) as Record<
    (typeof COUNTS)[number],
    number
  >;
}

function numberAt(parent: JsonObject, field: string, otherwise: number): number {
  const value = parent[field];
  return typeof value === "number" ? value : otherwise;
}
