import { parseApiVersion, type JsonObject } from "@konverge/core";
import { BUILT_IN_KINDS, type BuiltInKind } from "../built-in-objects.ts";
import type { Case, SendStep, Step } from "../case.ts";
import { APPLY, MERGE } from "../objects.ts";

const PODS = "/api/v1/namespaces/{ns}/pods";
const BUDGETS = "/apis/policy/v1/namespaces/{ns}/poddisruptionbudgets";
const JOBS = "/apis/batch/v1/namespaces/{ns}/jobs";

const pod: JsonObject = {
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name: "{o}", labels: { app: "{o}" } },
  spec: { nodeName: "somewhere", containers: [{ name: "main", image: "example.com/web:1" }] },
};
const evict: Pick<SendStep, "send" | "body"> = {
  send: `POST ${PODS}/{o}/eviction`,
  body: {
    apiVersion: "policy/v1",
    kind: "Eviction",
    metadata: { name: "{o}", namespace: "{ns}" },
    deleteOptions: { gracePeriodSeconds: 0 },
  },
};

const job: JsonObject = {
  apiVersion: "batch/v1",
  kind: "Job",
  metadata: { name: "{o}" },
  spec: { template: { spec: { ...(pod["spec"] as JsonObject), restartPolicy: "Never" } } },
};
/** The server chooses labels and selector by the uid of the Job. */
const JOB_IGNORED = ["spec.selector", "spec.template.metadata"];
const STARTED = "2026-01-01T00:00:00Z";
const COMPLETED = "2026-01-01T00:01:00Z";
const jobCondition = (type: string, status = "True"): JsonObject => ({
  type,
  status,
  lastTransitionTime: COMPLETED,
});
const rejectedJobStatuses: readonly JsonObject[] = [
  // Complete without its start, its end, or the criteria that it met.
  { conditions: [jobCondition("SuccessCriteriaMet"), jobCondition("Complete")] },
  {
    startTime: STARTED,
    conditions: [jobCondition("SuccessCriteriaMet"), jobCondition("Complete")],
  },
  { startTime: STARTED, completionTime: COMPLETED, conditions: [jobCondition("Complete")] },
  {
    startTime: COMPLETED,
    completionTime: STARTED,
    conditions: [jobCondition("SuccessCriteriaMet"), jobCondition("Complete")],
  },
  // Complete with active Pods.
  {
    startTime: STARTED,
    completionTime: COMPLETED,
    active: 1,
    conditions: [jobCondition("SuccessCriteriaMet"), jobCondition("Complete")],
  },
  // An end without Complete.
  { startTime: STARTED, completionTime: COMPLETED },
  // Failed without a target, or together with Complete.
  { startTime: STARTED, conditions: [jobCondition("Failed")] },
  {
    startTime: STARTED,
    completionTime: COMPLETED,
    conditions: [
      jobCondition("SuccessCriteriaMet"),
      jobCondition("Complete"),
      jobCondition("FailureTarget"),
      jobCondition("Failed"),
    ],
  },
  // More ready than active Pods.
  { startTime: STARTED, active: 1, ready: 2 },
  { startTime: STARTED, active: -1 },
];

/** The same life of one object of each built-in kind, and deletions with rules of their own. */
export const builtInKinds: readonly Case[] = [
  ...BUILT_IN_KINDS.map((kind) => ({
    name: `${kind.kind}: created, read, changed, applied, reported and deleted`,
    steps: stepsOf(kind),
  })),
  {
    name: "Pod: deleted with a grace period once it has a node",
    steps: [
      { send: `POST ${PODS}`, body: pod, expect: { code: 201 } },
      {
        send: `DELETE ${PODS}/{o}`,
        expect: { code: 200, body: { metadata: { deletionGracePeriodSeconds: 30 } } },
      },
      {
        send: `DELETE ${PODS}/{o}?gracePeriodSeconds=5`,
        expect: { code: 200, body: { metadata: { deletionGracePeriodSeconds: 5 } } },
      },
      { send: `DELETE ${PODS}/{o}`, expect: { code: 200 } },
      { send: `DELETE ${PODS}/{o}?gracePeriodSeconds=0`, expect: { code: 200 } },
      { send: `GET ${PODS}/{o}`, expect: { code: 404 } },
    ],
  },
  {
    name: "Pod: evicted if its PodDisruptionBudget allows it",
    steps: [
      { send: `POST ${PODS}`, body: pod, expect: { code: 201 } },
      {
        send: `PATCH ${PODS}/{o}/status`,
        type: MERGE,
        body: { status: { phase: "Running", conditions: [{ type: "Ready", status: "True" }] } },
        expect: { code: 200 },
      },
      {
        send: `POST ${BUDGETS}`,
        body: {
          apiVersion: "policy/v1",
          kind: "PodDisruptionBudget",
          metadata: { name: "{o}" },
          spec: { minAvailable: 1, selector: { matchLabels: { app: "{o}" } } },
        },
        expect: { code: 201 },
      },
      { ...evict, expect: { code: 429, reason: "TooManyRequests" } },
      {
        send: `PATCH ${BUDGETS}/{o}/status`,
        type: MERGE,
        body: { status: { observedGeneration: 1, desiredHealthy: 1, currentHealthy: 1 } },
        expect: { code: 200 },
      },
      { ...evict, expect: { code: 429, reason: "TooManyRequests" } },
      {
        send: `PATCH ${BUDGETS}/{o}/status`,
        type: MERGE,
        body: { status: { currentHealthy: 2, disruptionsAllowed: 1 } },
        expect: { code: 200 },
      },
      { ...evict, expect: { code: 201 } },
      {
        send: `GET ${BUDGETS}/{o}`,
        // The real server is also a field manager here, and adds a condition.
        ignore: ["metadata.managedFields", "status.conditions"],
        expect: { code: 200, body: { status: { disruptionsAllowed: 0 } } },
      },
      { send: `GET ${PODS}/{o}`, expect: { code: 404 } },
      { send: `DELETE ${BUDGETS}/{o}`, expect: { code: 200 } },
    ],
  },
  ...[
    { policy: "AlwaysAllow", healthy: 0, code: 201 },
    { policy: "IfHealthyBudget", healthy: 0, code: 429 },
    { policy: "IfHealthyBudget", healthy: 1, code: 201 },
  ].map(({ policy, healthy, code }) => ({
    name: `Pod: an eviction of an unready Pod, with ${policy} and ${healthy} of 1 healthy Pods`,
    steps: [
      { send: `POST ${PODS}`, body: pod, expect: { code: 201 } },
      {
        send: `PATCH ${PODS}/{o}/status`,
        type: MERGE,
        body: { status: { phase: "Running", conditions: [{ type: "Ready", status: "False" }] } },
        expect: { code: 200 },
      },
      {
        send: `POST ${BUDGETS}`,
        body: {
          apiVersion: "policy/v1",
          kind: "PodDisruptionBudget",
          metadata: { name: "{o}" },
          spec: {
            minAvailable: 1,
            unhealthyPodEvictionPolicy: policy,
            selector: { matchLabels: { app: "{o}" } },
          },
        },
        expect: { code: 201 },
      },
      {
        send: `PATCH ${BUDGETS}/{o}/status`,
        type: MERGE,
        body: {
          status: { observedGeneration: 1, desiredHealthy: 1, currentHealthy: healthy },
        },
        expect: { code: 200 },
      },
      { ...evict, expect: { code } },
      { send: `GET ${PODS}/{o}`, expect: { code: code === 201 ? 404 : 200 } },
      { send: `DELETE ${BUDGETS}/{o}`, expect: { code: 200 } },
    ],
  })),
  {
    name: "Pod: an eviction of a Pod that is being deleted ignores its budget",
    steps: [
      { send: `POST ${PODS}`, body: pod, expect: { code: 201 } },
      {
        send: `PATCH ${PODS}/{o}/status`,
        type: MERGE,
        body: { status: { phase: "Running", conditions: [{ type: "Ready", status: "True" }] } },
        expect: { code: 200 },
      },
      {
        send: `POST ${BUDGETS}`,
        body: {
          apiVersion: "policy/v1",
          kind: "PodDisruptionBudget",
          metadata: { name: "{o}" },
          spec: { minAvailable: 1, selector: { matchLabels: { app: "{o}" } } },
        },
        expect: { code: 201 },
      },
      {
        send: `DELETE ${PODS}/{o}`,
        expect: { code: 200, body: { metadata: { deletionGracePeriodSeconds: 30 } } },
      },
      { ...evict, expect: { code: 201 } },
      { send: `GET ${PODS}/{o}`, expect: { code: 404 } },
      { send: `DELETE ${BUDGETS}/{o}`, expect: { code: 200 } },
    ],
  },
  {
    name: "Job: the status of a finished Job, as its controller writes it",
    steps: [
      { send: `POST ${JOBS}`, body: job, ignore: JOB_IGNORED, expect: { code: 201 } },
      ...rejectedJobStatuses.map((status) => ({
        send: `PATCH ${JOBS}/{o}/status`,
        type: MERGE,
        body: { status },
        ignore: ["message", "details.causes"],
        expect: { code: 422, reason: "Invalid" },
      })),
      {
        send: `PATCH ${JOBS}/{o}/status`,
        type: MERGE,
        body: {
          status: {
            startTime: STARTED,
            completionTime: COMPLETED,
            succeeded: 1,
            conditions: [jobCondition("SuccessCriteriaMet"), jobCondition("Complete")],
          },
        },
        ignore: JOB_IGNORED,
        expect: { code: 200, body: { status: { succeeded: 1 } } },
      },
      {
        send: `PATCH ${JOBS}/{o}/status`,
        type: MERGE,
        body: { status: { conditions: [jobCondition("FailureTarget"), jobCondition("Failed")] } },
        ignore: ["message", "details.causes"],
        expect: { code: 422, reason: "Invalid" },
      },
      {
        send: `DELETE ${JOBS}/{o}?propagationPolicy=Background`,
        ignore: JOB_IGNORED,
        expect: { code: 200 },
      },
    ],
  },
  {
    name: "Job: the status of a failed Job, as its controller writes it",
    steps: [
      { send: `POST ${JOBS}`, body: job, ignore: JOB_IGNORED, expect: { code: 201 } },
      {
        send: `PATCH ${JOBS}/{o}/status`,
        type: MERGE,
        body: {
          status: {
            startTime: STARTED,
            failed: 1,
            conditions: [jobCondition("FailureTarget"), jobCondition("Failed")],
          },
        },
        ignore: JOB_IGNORED,
        expect: { code: 200, body: { status: { failed: 1 } } },
      },
      {
        send: `DELETE ${JOBS}/{o}?propagationPolicy=Background`,
        ignore: JOB_IGNORED,
        expect: { code: 200 },
      },
    ],
  },
  {
    name: "Job: a deletion without a policy orphans its Pods, with a warning",
    steps: [
      {
        send: `POST ${JOBS}`,
        body: job,
        ignore: JOB_IGNORED,
        expect: { code: 201 },
      },
      {
        send: `DELETE ${JOBS}/{o}`,
        ignore: ["spec.selector", "spec.template.metadata"],
        expect: {
          code: 200,
          body: { metadata: { finalizers: ["orphan"] } },
          warnings: [
            "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning",
          ],
        },
      },
      {
        send: `DELETE ${JOBS}/{o}?propagationPolicy=Background`,
        ignore: ["spec.selector", "spec.template.metadata"],
        expect: { code: 200 },
      },
      { send: `GET ${JOBS}/{o}`, expect: { code: 404 } },
    ],
  },
];

function stepsOf(kind: BuiltInKind): Step[] {
  const { apiVersion, content, change, invalid, put = 200, ignore = [] } = kind;
  const { group, version } = parseApiVersion(apiVersion);
  const root = group === "" ? `/api/${version}` : `/apis/${group}/${version}`;
  const path = `${root}/${kind.scope === "Cluster" ? "" : "namespaces/{ns}/"}${kind.resource}`;
  const object = (members: JsonObject, name = "{o}"): JsonObject => ({
    apiVersion,
    kind: kind.kind,
    metadata: { name },
    ...members,
  });
  const one = `${path}/{o}`;
  return [
    { send: `POST ${path}`, body: object(content), ignore, expect: { code: 201 } },
    { send: `GET ${one}`, ignore, expect: { code: 200 } },
    {
      send: `GET ${path}?fieldSelector=metadata.name={o}&resourceVersion=0`,
      expect: { code: 200, items: ["{o}"] },
      // Compared by the single read.
      ignore: ["items"],
    },
    {
      send: `POST ${path}?fieldValidation=Strict`,
      body: { ...object(content, "{o}-2"), unknown: true },
      expect: { code: 400, reason: "BadRequest", message: /strict decoding error: unknown field/ },
    },
    ...invalidSteps(path, object, invalid),
    { send: `PATCH ${one}`, type: MERGE, body: change, ignore, expect: { code: 200 } },
    {
      send: `PATCH ${one}?fieldManager=applier`,
      type: APPLY,
      body: { ...object({}), metadata: { name: "{o}", labels: { applied: "yes" } } },
      ignore,
      expect: { code: 200, body: { metadata: { labels: { applied: "yes" } } } },
    },
    {
      send: `PATCH ${one}?fieldManager=applier&force=true`,
      type: APPLY,
      body: object(content),
      ignore,
      expect: { code: 200 },
    },
    ...statusSteps(one, kind),
    {
      // Without a version, which only some kinds accept; the server keeps what it chose, but no finalizer.
      send: `PUT ${one}`,
      body: object(content),
      ignore: put === 200 ? ignore : ["message", "details.causes"],
      expect: { code: put },
    },
    { send: `DELETE ${one}?propagationPolicy=Background`, expect: { code: 200 }, ignore },
    { send: `GET ${one}`, expect: { code: 404, reason: "NotFound" } },
  ];
}

function invalidSteps(
  path: string,
  object: (members: JsonObject, name?: string) => JsonObject,
  invalid: BuiltInKind["invalid"],
): Step[] {
  if (invalid === undefined) return [];
  return [
    {
      send: `POST ${path}`,
      body: object(invalid.content, "{o}-2"),
      // Other causes, and texts that print Go structs, are not compared.
      ignore: ["message", "details.causes"],
      expect: { code: 422, reason: "Invalid" },
    },
  ];
}

function statusSteps(one: string, { status, invalidStatus, ignore = [] }: BuiltInKind): Step[] {
  if (status === undefined) {
    return [
      {
        send: `PATCH ${one}/status`,
        type: MERGE,
        body: { status: {} },
        expect: { code: 404, reason: "NotFound" },
      },
    ];
  }
  return [
    {
      send: `PATCH ${one}/status?fieldManager=reporter`,
      type: MERGE,
      body: { status, spec: null },
      ignore,
      expect: { code: 200 },
    },
    { send: `GET ${one}/status`, ignore, expect: { code: 200 } },
    ...(invalidStatus === undefined
      ? []
      : [
          {
            send: `PATCH ${one}/status`,
            type: MERGE,
            body: { status: invalidStatus },
            expect: { code: 422, reason: "Invalid" },
          },
        ]),
  ];
}
