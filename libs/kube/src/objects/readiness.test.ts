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

interface Row {
  readonly what: string;
  readonly parts: Parts;
  readonly status: Readiness["status"];
  readonly message?: string;
}
const table = (apiVersion: string, kind: string, rows: readonly Row[]) =>
  describe(`${kind} of ${apiVersion}`, () => {
    test.each(rows)("$what: $status", ({ parts, status, message }) => {
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
  { what: "rolled out", parts: deployment(rolled), status: "current" },
  {
    what: "no status",
    parts: { metadata: meta, spec: {} },
    status: "inProgress",
    message: "has not observed",
  },
  {
    what: "not created",
    parts: deployment({ ...rolled, replicas: 2 }),
    status: "inProgress",
    message: "2 of 3 created",
  },
  {
    what: "not updated",
    parts: deployment({ ...rolled, updatedReplicas: 2 }),
    status: "inProgress",
    message: "2 of 3 updated",
  },
  {
    what: "old pods",
    parts: deployment({ ...rolled, replicas: 4 }),
    status: "inProgress",
    message: "1 old Pods remaining",
  },
  {
    what: "not available",
    parts: deployment({ ...rolled, availableReplicas: 1 }),
    status: "inProgress",
    message: "1 of 3 available",
  },
  {
    what: "not ready",
    parts: deployment({ ...rolled, readyReplicas: 1 }),
    status: "inProgress",
    message: "1 of 3 ready",
  },
  {
    what: "still progressing",
    parts: deployment({
      ...rolled,
      conditions: [cond("Progressing", "True", { reason: "ReplicaSetUpdated" }), cond("Available")],
    }),
    status: "inProgress",
    message: "new ReplicaSet",
  },
  {
    what: "without a deadline",
    parts: deployment(
      { ...rolled, conditions: [cond("Available")] },
      { progressDeadlineSeconds: 2_147_483_647 },
    ),
    status: "current",
  },
  {
    what: "not Available",
    parts: deployment({ ...rolled, conditions: [progressing] }),
    status: "inProgress",
    message: "is not available",
  },
  {
    what: "past its deadline",
    parts: deployment({
      ...seen,
      conditions: [
        cond("Progressing", "False", { reason: "ProgressDeadlineExceeded", message: "too slow" }),
      ],
    }),
    status: "failed",
    message: "too slow",
  },
  {
    what: "status of an older generation",
    parts: { ...deployment(rolled), metadata: { generation: 2 } },
    status: "inProgress",
    message: "generation 1 of 2",
  },
  { what: "scaled to 0", parts: deployment({ ...seen }, { replicas: 0 }), status: "current" },
]);

const set = (status: Parts, spec: Parts = {}): Parts => ({
  metadata: meta,
  spec: { replicas: 2, ...spec },
  status: { ...seen, currentRevision: "r1", updateRevision: "r1", ...status },
});
const full = { replicas: 2, readyReplicas: 2, currentReplicas: 2 };
table("apps/v1", "StatefulSet", [
  { what: "rolled out", parts: set(full), status: "current" },
  {
    what: "of 0, unseen",
    parts: { metadata: meta, spec: { replicas: 0 } },
    status: "inProgress",
    message: "has not observed",
  },
  { what: "OnDelete", parts: set({}, { updateStrategy: { type: "OnDelete" } }), status: "current" },
  {
    what: "not created",
    parts: set({ ...full, replicas: 1 }),
    status: "inProgress",
    message: "1 of 2 created",
  },
  {
    what: "not ready",
    parts: set({ ...full, readyReplicas: 0 }),
    status: "inProgress",
    message: "0 of 2 ready",
  },
  {
    what: "too many",
    parts: set({ ...full, replicas: 3 }),
    status: "inProgress",
    message: "1 Pods too many",
  },
  {
    what: "partition reached",
    parts: set(
      { ...full, updatedReplicas: 1 },
      { updateStrategy: { rollingUpdate: { partition: 1 } } },
    ),
    status: "current",
  },
  {
    what: "partition not reached",
    parts: set(
      { ...full, updatedReplicas: 0 },
      { updateStrategy: { rollingUpdate: { partition: 1 } } },
    ),
    status: "inProgress",
    message: "0 of 1 updated",
  },
  {
    what: "old revision",
    parts: set({ ...full, currentReplicas: 1 }),
    status: "inProgress",
    message: "1 of 2 at its current",
  },
  {
    what: "two revisions",
    parts: set({ ...full, updateRevision: "r2" }),
    status: "inProgress",
    message: "not rolled out",
  },
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
  { what: "everywhere", parts: daemon({}), status: "current" },
  { what: "unseen", parts: { metadata: meta }, status: "inProgress", message: "has not observed" },
  {
    what: "uncounted",
    parts: { metadata: meta, status: seen },
    status: "inProgress",
    message: "number of nodes",
  },
  {
    what: "no nodes",
    parts: { metadata: meta, status: { ...seen, desiredNumberScheduled: 0 } },
    status: "current",
  },
  {
    what: "not created",
    parts: daemon({ currentNumberScheduled: 1 }),
    status: "inProgress",
    message: "1 of 2 created",
  },
  {
    what: "not updated",
    parts: daemon({ updatedNumberScheduled: 1 }),
    status: "inProgress",
    message: "1 of 2 updated",
  },
  {
    what: "not available",
    parts: daemon({ numberAvailable: 1 }),
    status: "inProgress",
    message: "1 of 2 available",
  },
  {
    what: "not ready",
    parts: daemon({ numberReady: 1 }),
    status: "inProgress",
    message: "1 of 2 ready",
  },
]);

const replicas = { replicas: 2, fullyLabeledReplicas: 2, availableReplicas: 2, readyReplicas: 2 };
const replicaSet = (status: Parts): Parts => ({
  metadata: meta,
  spec: { replicas: 2 },
  status: { ...seen, ...replicas, ...status },
});
table("apps/v1", "ReplicaSet", [
  { what: "full", parts: replicaSet({}), status: "current" },
  {
    what: "refused",
    parts: replicaSet({ conditions: [cond("ReplicaFailure", "True", { message: "quota" })] }),
    status: "inProgress",
    message: "quota",
  },
  {
    what: "not labelled",
    parts: replicaSet({ fullyLabeledReplicas: 1 }),
    status: "inProgress",
    message: "labelled",
  },
  {
    what: "not available",
    parts: replicaSet({ availableReplicas: 1 }),
    status: "inProgress",
    message: "1 of 2 available",
  },
  {
    what: "not ready",
    parts: replicaSet({ readyReplicas: 1 }),
    status: "inProgress",
    message: "1 of 2 ready",
  },
  {
    what: "too many",
    parts: replicaSet({ replicas: 3 }),
    status: "inProgress",
    message: "1 Pods too many",
  },
]);

table("batch/v1", "Job", [
  { what: "new", parts: {}, status: "inProgress" },
  { what: "started", parts: { status: { startTime: at(0) } }, status: "current" },
  { what: "complete", parts: { status: { conditions: [cond("Complete")] } }, status: "current" },
  {
    what: "failed",
    parts: { status: { conditions: [cond("Failed", "True", { message: "backoff limit" })] } },
    status: "failed",
    message: "backoff limit",
  },
  {
    what: "suspended",
    parts: { spec: { suspend: true }, status: { conditions: [cond("Suspended")] } },
    status: "current",
  },
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
  { what: "new", parts: {}, status: "inProgress" },
  { what: "pulling", parts: { status: { phase: "Pending" } }, status: "inProgress" },
  {
    what: "no node for long",
    parts: { status: unschedulable(45) },
    status: "failed",
    message: "no cpu",
  },
  {
    what: "no node yet",
    parts: { status: unschedulable(46) },
    status: "inProgress",
    message: "no cpu",
  },
  { what: "running", parts: { status: { phase: "Running" } }, status: "inProgress" },
  {
    what: "ready",
    parts: { status: { phase: "Running", conditions: [cond("Ready")] } },
    status: "current",
  },
  {
    what: "crashing",
    parts: {
      status: {
        phase: "Running",
        containerStatuses: [{ name: "app", state: { waiting: { reason: "CrashLoopBackOff" } } }],
      },
    },
    status: "failed",
    message: "app",
  },
  { what: "succeeded", parts: { status: { phase: "Succeeded" } }, status: "current" },
  { what: "failed", parts: { status: { phase: "Failed" } }, status: "current" },
]);
test("an unschedulable Pod reports when that becomes a failure", () => {
  const { againAtMs } = is(make("v1", "Pod", { status: unschedulable(46) }));
  expect(againAtMs).toBe(Date.parse(at(61)));
});

table("v1", "PersistentVolumeClaim", [
  { what: "bound", parts: { status: { phase: "Bound" } }, status: "current" },
  {
    what: "pending",
    parts: { status: { phase: "Pending" } },
    status: "inProgress",
    message: "is Pending",
  },
]);
table("v1", "Namespace", [
  { what: "active", parts: { status: { phase: "Active" } }, status: "current" },
  { what: "new", parts: {}, status: "inProgress" },
]);
table("v1", "Service", [
  { what: "without a load balancer", parts: { spec: { type: "ClusterIP" } }, status: "current" },
  {
    what: "load balancer without an address",
    parts: { spec: { type: "LoadBalancer" } },
    status: "inProgress",
  },
  {
    what: "balancer",
    parts: { spec: { type: "LoadBalancer", clusterIP: "10.0.0.1" } },
    status: "current",
  },
]);
table("apiextensions.k8s.io/v1", "CustomResourceDefinition", [
  { what: "new", parts: {}, status: "inProgress" },
  {
    what: "established",
    parts: { status: { conditions: [cond("Established")] } },
    status: "current",
  },
  {
    what: "installing",
    parts: { status: { conditions: [cond("Established", "False", { reason: "Installing" })] } },
    status: "inProgress",
  },
  {
    what: "refused",
    parts: { status: { conditions: [cond("Established", "False", { reason: "NotAccepted" })] } },
    status: "failed",
  },
  {
    what: "names taken",
    parts: { status: { conditions: [cond("NamesAccepted", "False", { message: "taken" })] } },
    status: "failed",
    message: "taken",
  },
]);
table("policy/v1", "PodDisruptionBudget", [
  { what: "seen", parts: { metadata: meta, status: seen }, status: "current" },
  { what: "changed", parts: { metadata: { generation: 2 }, status: seen }, status: "inProgress" },
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
  {
    what: "not observed yet",
    parts: { metadata: meta },
    status: "inProgress",
    message: "no Ready condition",
  },
  {
    what: "a status without Ready",
    parts: { metadata: meta, status: seen },
    status: "inProgress",
    message: "no Ready condition",
  },
  {
    what: "Ready of this generation",
    parts: { metadata: meta, status: { ...seen, conditions: [cond("Ready")] } },
    status: "current",
  },
  {
    what: "Ready with its generation",
    parts: {
      metadata: meta,
      status: { conditions: [cond("Ready", "True", { observedGeneration: 1 })] },
    },
    status: "current",
  },
  {
    what: "Ready of an older generation",
    parts: {
      metadata: { generation: 2 },
      status: { conditions: [cond("Ready", "True", { observedGeneration: 1 })] },
    },
    status: "inProgress",
    message: "for generation 1",
  },
  {
    what: "Ready False",
    parts: {
      metadata: meta,
      status: { ...seen, conditions: [cond("Ready", "False", { message: "no rooms" })] },
    },
    status: "inProgress",
    message: "no rooms",
  },
  {
    what: "Reconciling",
    parts: {
      metadata: meta,
      status: {
        ...seen,
        conditions: [cond("Ready"), cond("Reconciling", "True", { reason: "Moving" })],
      },
    },
    status: "inProgress",
    message: "Moving",
  },
  {
    what: "Stalled",
    parts: {
      metadata: meta,
      status: {
        ...seen,
        conditions: [cond("Ready"), cond("Stalled", "True", { message: "broken" })],
      },
    },
    status: "failed",
    message: "broken",
  },
  {
    what: "being deleted",
    parts: { metadata: { deletionTimestamp: at(1) }, status: { conditions: [cond("Ready")] } },
    status: "terminating",
  },
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
  test.each([
    { what: "started", parts: { status: { startTime: at(0), active: 1 } }, status: "inProgress" },
    { what: "suspended", parts: { spec: { suspend: true } }, status: "inProgress" },
    { what: "complete", parts: { status: { conditions: [cond("Complete")] } }, status: "current" },
    { what: "failed", parts: { status: { conditions: [cond("Failed")] } }, status: "failed" },
    {
      what: "being deleted",
      parts: { metadata: { deletionTimestamp: at(1) } },
      status: "terminating",
    },
  ])("$what: $status", ({ parts, status }) => {
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
