import { describe, expect, test } from "vitest";
import type { ApiObject } from "@konverge/core";
import type { Readiness } from "./readiness-state.ts";
import { completionOf, readinessOf, type ReadinessOptions } from "./readiness.ts";

type Parts = Readonly<Record<string, unknown>>;
const NOW_MS = Date.UTC(2026, 0, 1, 0, 1);
const at = (second: number) => new Date(Date.UTC(2026, 0, 1, 0, 0, second)).toISOString();
const make = (apiVersion: string, kind: string, parts: Parts = {}): ApiObject => {
  const { metadata = {}, ...rest } = parts;
  return { apiVersion, kind, metadata: { name: "a", ...(metadata as object) }, ...rest };
};
const cond = (type: string, status = "True", rest: Parts = {}) => ({ type, status, ...rest });
const is = (object: ApiObject, options: ReadinessOptions = {}) =>
  readinessOf(object, { nowMs: NOW_MS, ...options });

type Row = readonly [what: string, parts: Parts, status: Readiness["status"], message?: string];
const table = (apiVersion: string, kind: string, rows: readonly Row[]) =>
  describe(`${kind} of ${apiVersion}`, () => {
    test.for(rows)("%s", ([, parts, status, message]) => {
      const readiness = is(make(apiVersion, kind, parts));
      expect(readiness.status).toBe(status);
      if (message !== undefined) expect(readiness.message).toContain(message);
      expect(readiness.message === "").toBe(status === "current");
    });
  });

const seen = { observedGeneration: 1 };
const meta = { generation: 1 };
const rolled = {
  ...seen,
  replicas: 3,
  updatedReplicas: 3,
  availableReplicas: 3,
  readyReplicas: 3,
};
const progressing = cond("Progressing", "True", { reason: "NewReplicaSetAvailable" });
const deployment = (status: Parts, spec: Parts = {}): Parts => ({
  metadata: meta,
  spec: { replicas: 3, progressDeadlineSeconds: 600, ...spec },
  status: { conditions: [progressing, cond("Available")], ...status },
});
table("apps/v1", "Deployment", [
  ["rolled out", deployment(rolled), "current"],
  ["no status", { metadata: meta, spec: {} }, "inProgress", "has not observed"],
  ["not created", deployment({ ...rolled, replicas: 2 }), "inProgress", "2 of 3 created"],
  ["not updated", deployment({ ...rolled, updatedReplicas: 2 }), "inProgress", "2 of 3 updated"],
  ["old pods", deployment({ ...rolled, replicas: 4 }), "inProgress", "1 old Pods remaining"],
  [
    "not available",
    deployment({ ...rolled, availableReplicas: 1 }),
    "inProgress",
    "1 of 3 available",
  ],
  ["not ready", deployment({ ...rolled, readyReplicas: 1 }), "inProgress", "1 of 3 ready"],
  [
    "still progressing",
    deployment({
      ...rolled,
      conditions: [cond("Progressing", "True", { reason: "ReplicaSetUpdated" }), cond("Available")],
    }),
    "inProgress",
    "new ReplicaSet",
  ],
  [
    "without a deadline",
    deployment(
      { ...rolled, conditions: [cond("Available")] },
      { progressDeadlineSeconds: 2_147_483_647 },
    ),
    "current",
  ],
  [
    "not Available",
    deployment({ ...rolled, conditions: [progressing] }),
    "inProgress",
    "is not available",
  ],
  [
    "past its deadline",
    deployment({
      ...seen,
      conditions: [
        cond("Progressing", "False", { reason: "ProgressDeadlineExceeded", message: "too slow" }),
      ],
    }),
    "failed",
    "too slow",
  ],
  [
    "status of an older generation",
    { ...deployment(rolled), metadata: { generation: 2 } },
    "inProgress",
    "generation 1 of 2",
  ],
  ["scaled to 0", deployment({ ...seen }, { replicas: 0 }), "current"],
]);

const set = (status: Parts, spec: Parts = {}): Parts => ({
  metadata: meta,
  spec: { replicas: 2, ...spec },
  status: { ...seen, currentRevision: "r1", updateRevision: "r1", ...status },
});
const full = { replicas: 2, readyReplicas: 2, currentReplicas: 2 };
table("apps/v1", "StatefulSet", [
  ["rolled out", set(full), "current"],
  ["of 0, unseen", { metadata: meta, spec: { replicas: 0 } }, "inProgress", "has not observed"],
  ["OnDelete", set({}, { updateStrategy: { type: "OnDelete" } }), "current"],
  ["not created", set({ ...full, replicas: 1 }), "inProgress", "1 of 2 created"],
  ["not ready", set({ ...full, readyReplicas: 0 }), "inProgress", "0 of 2 ready"],
  ["too many", set({ ...full, replicas: 3 }), "inProgress", "1 Pods too many"],
  [
    "partition reached",
    set({ ...full, updatedReplicas: 1 }, { updateStrategy: { rollingUpdate: { partition: 1 } } }),
    "current",
  ],
  [
    "partition not reached",
    set({ ...full, updatedReplicas: 0 }, { updateStrategy: { rollingUpdate: { partition: 1 } } }),
    "inProgress",
    "0 of 1 updated",
  ],
  ["old revision", set({ ...full, currentReplicas: 1 }), "inProgress", "1 of 2 at its current"],
  ["two revisions", set({ ...full, updateRevision: "r2" }), "inProgress", "not rolled out"],
]);

const nodes = {
  currentNumberScheduled: 2,
  updatedNumberScheduled: 2,
  numberAvailable: 2,
  numberReady: 2,
};
const daemon = (status: Parts): Parts => ({
  metadata: meta,
  status: { ...seen, desiredNumberScheduled: 2, ...nodes, ...status },
});
table("apps/v1", "DaemonSet", [
  ["everywhere", daemon({}), "current"],
  ["unseen", { metadata: meta }, "inProgress", "has not observed"],
  ["uncounted", { metadata: meta, status: seen }, "inProgress", "number of nodes"],
  ["no nodes", { metadata: meta, status: { ...seen, desiredNumberScheduled: 0 } }, "current"],
  ["not created", daemon({ currentNumberScheduled: 1 }), "inProgress", "1 of 2 created"],
  ["not updated", daemon({ updatedNumberScheduled: 1 }), "inProgress", "1 of 2 updated"],
  ["not available", daemon({ numberAvailable: 1 }), "inProgress", "1 of 2 available"],
  ["not ready", daemon({ numberReady: 1 }), "inProgress", "1 of 2 ready"],
]);

const replicas = { replicas: 2, fullyLabeledReplicas: 2, availableReplicas: 2, readyReplicas: 2 };
const replicaSet = (status: Parts): Parts => ({
  metadata: meta,
  spec: { replicas: 2 },
  status: { ...seen, ...replicas, ...status },
});
table("apps/v1", "ReplicaSet", [
  ["full", replicaSet({}), "current"],
  [
    "refused",
    replicaSet({ conditions: [cond("ReplicaFailure", "True", { message: "quota" })] }),
    "inProgress",
    "quota",
  ],
  ["not labelled", replicaSet({ fullyLabeledReplicas: 1 }), "inProgress", "labelled"],
  ["not available", replicaSet({ availableReplicas: 1 }), "inProgress", "1 of 2 available"],
  ["not ready", replicaSet({ readyReplicas: 1 }), "inProgress", "1 of 2 ready"],
  ["too many", replicaSet({ replicas: 3 }), "inProgress", "1 Pods too many"],
]);

table("batch/v1", "Job", [
  ["new", {}, "inProgress"],
  ["started", { status: { startTime: at(0) } }, "current"],
  ["complete", { status: { conditions: [cond("Complete")] } }, "current"],
  [
    "failed",
    { status: { conditions: [cond("Failed", "True", { message: "backoff limit" })] } },
    "failed",
    "backoff limit",
  ],
  [
    "suspended",
    { spec: { suspend: true }, status: { conditions: [cond("Suspended")] } },
    "current",
  ],
]);

const unschedulable = (second: number) => ({
  phase: "Pending",
  conditions: [
    cond("PodScheduled", "False", {
      reason: "Unschedulable",
      message: "no cpu",
      lastTransitionTime: at(second),
    }),
  ],
});
table("v1", "Pod", [
  ["new", {}, "inProgress"],
  ["pulling", { status: { phase: "Pending" } }, "inProgress"],
  ["no node for long", { status: unschedulable(45) }, "failed", "no cpu"],
  ["no node yet", { status: unschedulable(46) }, "inProgress", "no cpu"],
  ["running", { status: { phase: "Running" } }, "inProgress"],
  ["ready", { status: { phase: "Running", conditions: [cond("Ready")] } }, "current"],
  [
    "crashing",
    {
      status: {
        phase: "Running",
        containerStatuses: [{ name: "app", state: { waiting: { reason: "CrashLoopBackOff" } } }],
      },
    },
    "failed",
    "app",
  ],
  ["succeeded", { status: { phase: "Succeeded" } }, "current"],
  ["failed", { status: { phase: "Failed" } }, "current"],
]);
test("an unschedulable Pod reports when that becomes a failure", () => {
  const { againAtMs } = is(make("v1", "Pod", { status: unschedulable(46) }));
  expect(againAtMs).toBe(Date.parse(at(61)));
});

table("v1", "PersistentVolumeClaim", [
  ["bound", { status: { phase: "Bound" } }, "current"],
  ["pending", { status: { phase: "Pending" } }, "inProgress", "is Pending"],
]);
table("v1", "Namespace", [
  ["active", { status: { phase: "Active" } }, "current"],
  ["new", {}, "inProgress"],
]);
table("v1", "Service", [
  ["without a load balancer", { spec: { type: "ClusterIP" } }, "current"],
  ["load balancer without an address", { spec: { type: "LoadBalancer" } }, "inProgress"],
  ["balancer", { spec: { type: "LoadBalancer", clusterIP: "10.0.0.1" } }, "current"],
]);
table("apiextensions.k8s.io/v1", "CustomResourceDefinition", [
  ["new", {}, "inProgress"],
  ["established", { status: { conditions: [cond("Established")] } }, "current"],
  [
    "installing",
    { status: { conditions: [cond("Established", "False", { reason: "Installing" })] } },
    "inProgress",
  ],
  [
    "refused",
    { status: { conditions: [cond("Established", "False", { reason: "NotAccepted" })] } },
    "failed",
  ],
  [
    "names taken",
    { status: { conditions: [cond("NamesAccepted", "False", { message: "taken" })] } },
    "failed",
    "taken",
  ],
]);
table("policy/v1", "PodDisruptionBudget", [
  ["seen", { metadata: meta, status: seen }, "current"],
  ["changed", { metadata: { generation: 2 }, status: seen }, "inProgress"],
]);
describe("kinds that are always current", () => {
  test.each([
    ["v1", "ConfigMap"],
    ["v1", "Secret"],
    ["batch/v1", "CronJob"],
    ["networking.k8s.io/v1", "Ingress"],
    ["rbac.authorization.k8s.io/v1", "Role"],
  ])("%s %s", (apiVersion, kind) => {
    expect(is(make(apiVersion, kind))).toEqual({ status: "current", message: "" });
  });
});

table("shop.example.com/v1", "Shop", [
  ["not observed yet", { metadata: meta }, "inProgress", "no Ready condition"],
  ["a status without Ready", { metadata: meta, status: seen }, "inProgress", "no Ready condition"],
  [
    "Ready of this generation",
    { metadata: meta, status: { ...seen, conditions: [cond("Ready")] } },
    "current",
  ],
  [
    "Ready with its generation",
    {
      metadata: meta,
      status: { conditions: [cond("Ready", "True", { observedGeneration: 1 })] },
    },
    "current",
  ],
  [
    "Ready of an older generation",
    {
      metadata: { generation: 2 },
      status: { conditions: [cond("Ready", "True", { observedGeneration: 1 })] },
    },
    "inProgress",
    "for generation 1",
  ],
  [
    "Ready False",
    {
      metadata: meta,
      status: { ...seen, conditions: [cond("Ready", "False", { message: "no rooms" })] },
    },
    "inProgress",
    "no rooms",
  ],
  [
    "Reconciling",
    {
      metadata: meta,
      status: {
        ...seen,
        conditions: [cond("Ready"), cond("Reconciling", "True", { reason: "Moving" })],
      },
    },
    "inProgress",
    "Moving",
  ],
  [
    "Stalled",
    {
      metadata: meta,
      status: {
        ...seen,
        conditions: [cond("Ready"), cond("Stalled", "True", { message: "broken" })],
      },
    },
    "failed",
    "broken",
  ],
  [
    "being deleted",
    { metadata: { deletionTimestamp: at(1) }, status: { conditions: [cond("Ready")] } },
    "terminating",
  ],
]);

test("a custom resource without a Ready condition is ready if the caller opts in and it has been observed", () => {
  expect(is(make("shop.example.com/v1", "Shop"), { none: "ready" }).status).toBe("current");
  const unseen = make("shop.example.com/v1", "Shop", { metadata: { generation: 2 }, status: seen });
  expect(is(unseen, { none: "ready" }).status).toBe("inProgress");
});

describe("Ready without a generation counts once the status was written after the spec", () => {
  const shop = (readySecond: number, statusSecond?: number) =>
    make("shop.example.com/v1", "Shop", {
      metadata: {
        generation: 2,
        resourceVersion: "7",
        managedFields: [
          { time: at(10), fieldsV1: { "f:spec": {} } },
          { time: at(30), fieldsV1: { "f:metadata": {} } },
          ...(statusSecond === undefined
            ? []
            : [{ time: at(statusSecond), subresource: "status", fieldsV1: { "f:status": {} } }]),
        ],
      },
      status: { conditions: [cond("Ready", "True", { lastTransitionTime: at(readySecond) })] },
    });
  test.each([
    { ready: 5, status: undefined, version: undefined, expected: "inProgress" },
    { ready: 5, status: 5, version: undefined, expected: "inProgress" },
    { ready: 5, status: 11, version: undefined, expected: "current" },
    { ready: 11, status: undefined, version: undefined, expected: "current" },
    { ready: 10, status: undefined, version: "6", expected: "current" },
    { ready: 10, status: undefined, version: "7", expected: "inProgress" },
    { ready: 11, status: undefined, version: "7", expected: "current" },
  ])("ready $ready, status $status, written $version: $expected", (row) => {
    const { ready, status, version, expected } = row;
    const options = version === undefined ? {} : { writtenVersion: version };
    expect(is(shop(ready, status), options).status).toBe(expected);
  });
  test("without managedFields a version after one's own write suffices", () => {
    const bare = make("shop.example.com/v1", "Shop", {
      metadata: { generation: 2, resourceVersion: "7" },
      status: { conditions: [cond("Ready")] },
    });
    expect(is(bare, { writtenVersion: "6" }).status).toBe("current");
    expect(is(bare, { writtenVersion: "7" }).status).toBe("inProgress");
  });
});

describe("a Job is complete at its end", () => {
  test.for<Row>([
    ["started", { status: { startTime: at(0), active: 1 } }, "inProgress"],
    ["suspended", { spec: { suspend: true } }, "inProgress"],
    ["complete", { status: { conditions: [cond("Complete")] } }, "current"],
    ["failed", { status: { conditions: [cond("Failed")] } }, "failed"],
    ["being deleted", { metadata: { deletionTimestamp: at(1) } }, "terminating"],
  ])("%s", ([, parts, status]) => {
    expect(completionOf(make("batch/v1", "Job", parts)).status).toBe(status);
  });
});

test("a missing object is not found; a missing number is not misread", () => {
  expect(readinessOf(undefined).status).toBe("notFound");
  for (const status of [null, [], "x", { conditions: "x" }, { conditions: [null, 1] }]) {
    const odd = make("apps/v1", "Deployment", { metadata: meta, spec: null, status });
    expect(is(odd).status).toBe("inProgress");
  }
});
