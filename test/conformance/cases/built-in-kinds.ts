import { parseApiVersion, type JsonObject } from "@konverge/core";
import { BUILT_IN_KINDS, type BuiltInKind } from "../built-in-objects.ts";
import type { Case, SendStep, Step } from "../case.ts";
import { applyPatch, get, mergePatch, post, remove } from "../steps.ts";

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
      post(PODS, 201, pod),
      remove(`${PODS}/{o}`, { code: 200, body: { metadata: { deletionGracePeriodSeconds: 30 } } }),
      remove(`${PODS}/{o}?gracePeriodSeconds=5`, {
        code: 200,
        body: { metadata: { deletionGracePeriodSeconds: 5 } },
      }),
      remove(`${PODS}/{o}`, 200),
      remove(`${PODS}/{o}?gracePeriodSeconds=0`, 200),
      get(`${PODS}/{o}`, 404),
    ],
  },
  {
    name: "Pod: evicted if its PodDisruptionBudget allows it",
    steps: [
      post(PODS, 201, pod),
      mergePatch(`${PODS}/{o}/status`, 200, {
        status: { phase: "Running", conditions: [{ type: "Ready", status: "True" }] },
      }),
      post(BUDGETS, 201, {
        apiVersion: "policy/v1",
        kind: "PodDisruptionBudget",
        metadata: { name: "{o}" },
        spec: { minAvailable: 1, selector: { matchLabels: { app: "{o}" } } },
      }),
      { ...evict, expect: { code: 429, reason: "TooManyRequests" } },
      mergePatch(`${BUDGETS}/{o}/status`, 200, {
        status: { observedGeneration: 1, desiredHealthy: 1, currentHealthy: 1 },
      }),
      { ...evict, expect: { code: 429, reason: "TooManyRequests" } },
      mergePatch(`${BUDGETS}/{o}/status`, 200, {
        status: { currentHealthy: 2, disruptionsAllowed: 1 },
      }),
      { ...evict, expect: { code: 201 } },
      {
        send: `GET ${BUDGETS}/{o}`,
        // The real server is also a field manager here, and adds a condition.
        ignore: ["metadata.managedFields", "status.conditions"],
        expect: { code: 200, body: { status: { disruptionsAllowed: 0 } } },
      },
      get(`${PODS}/{o}`, 404),
      remove(`${BUDGETS}/{o}`, 200),
    ],
  },
  ...[
    { policy: "AlwaysAllow", healthy: 0, code: 201 },
    { policy: "IfHealthyBudget", healthy: 0, code: 429 },
    { policy: "IfHealthyBudget", healthy: 1, code: 201 },
  ].map(({ policy, healthy, code }) => ({
    name: `Pod: an eviction of an unready Pod, with ${policy} and ${healthy} of 1 healthy Pods`,
    steps: [
      post(PODS, 201, pod),
      mergePatch(`${PODS}/{o}/status`, 200, {
        status: { phase: "Running", conditions: [{ type: "Ready", status: "False" }] },
      }),
      post(BUDGETS, 201, {
        apiVersion: "policy/v1",
        kind: "PodDisruptionBudget",
        metadata: { name: "{o}" },
        spec: {
          minAvailable: 1,
          unhealthyPodEvictionPolicy: policy,
          selector: { matchLabels: { app: "{o}" } },
        },
      }),
      mergePatch(`${BUDGETS}/{o}/status`, 200, {
        status: { observedGeneration: 1, desiredHealthy: 1, currentHealthy: healthy },
      }),
      { ...evict, expect: { code } },
      get(`${PODS}/{o}`, { code: code === 201 ? 404 : 200 }),
      remove(`${BUDGETS}/{o}`, 200),
    ],
  })),
  {
    name: "Pod: an eviction of a Pod that is being deleted ignores its budget",
    steps: [
      post(PODS, 201, pod),
      mergePatch(`${PODS}/{o}/status`, 200, {
        status: { phase: "Running", conditions: [{ type: "Ready", status: "True" }] },
      }),
      post(BUDGETS, 201, {
        apiVersion: "policy/v1",
        kind: "PodDisruptionBudget",
        metadata: { name: "{o}" },
        spec: { minAvailable: 1, selector: { matchLabels: { app: "{o}" } } },
      }),
      remove(`${PODS}/{o}`, { code: 200, body: { metadata: { deletionGracePeriodSeconds: 30 } } }),
      { ...evict, expect: { code: 201 } },
      get(`${PODS}/{o}`, 404),
      remove(`${BUDGETS}/{o}`, 200),
    ],
  },
  {
    name: "Job: the status of a finished Job, as its controller writes it",
    steps: [
      post(JOBS, 201, job, { ignore: JOB_IGNORED }),
      ...rejectedJobStatuses.map((status) =>
        mergePatch(
          `${JOBS}/{o}/status`,
          { code: 422, reason: "Invalid" },
          { status },
          { ignore: ["message", "details.causes"] },
        ),
      ),
      mergePatch(
        `${JOBS}/{o}/status`,
        { code: 200, body: { status: { succeeded: 1 } } },
        {
          status: {
            startTime: STARTED,
            completionTime: COMPLETED,
            succeeded: 1,
            conditions: [jobCondition("SuccessCriteriaMet"), jobCondition("Complete")],
          },
        },
        { ignore: JOB_IGNORED },
      ),
      mergePatch(
        `${JOBS}/{o}/status`,
        { code: 422, reason: "Invalid" },
        { status: { conditions: [jobCondition("FailureTarget"), jobCondition("Failed")] } },
        { ignore: ["message", "details.causes"] },
      ),
      remove(`${JOBS}/{o}?propagationPolicy=Background`, 200, { ignore: JOB_IGNORED }),
    ],
  },
  {
    name: "Job: the status of a failed Job, as its controller writes it",
    steps: [
      post(JOBS, 201, job, { ignore: JOB_IGNORED }),
      mergePatch(
        `${JOBS}/{o}/status`,
        { code: 200, body: { status: { failed: 1 } } },
        {
          status: {
            startTime: STARTED,
            failed: 1,
            conditions: [jobCondition("FailureTarget"), jobCondition("Failed")],
          },
        },
        { ignore: JOB_IGNORED },
      ),
      remove(`${JOBS}/{o}?propagationPolicy=Background`, 200, { ignore: JOB_IGNORED }),
    ],
  },
  {
    name: "Job: a deletion without a policy orphans its Pods, with a warning",
    steps: [
      post(JOBS, 201, job, { ignore: JOB_IGNORED }),
      remove(
        `${JOBS}/{o}`,
        {
          code: 200,
          body: { metadata: { finalizers: ["orphan"] } },
          warnings: [
            "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning",
          ],
        },
        { ignore: ["spec.selector", "spec.template.metadata"] },
      ),
      remove(`${JOBS}/{o}?propagationPolicy=Background`, 200, {
        ignore: ["spec.selector", "spec.template.metadata"],
      }),
      get(`${JOBS}/{o}`, 404),
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
    post(path, 201, object(content), { ignore }),
    get(one, 200, { ignore }),
    {
      send: `GET ${path}?fieldSelector=metadata.name={o}&resourceVersion=0`,
      expect: { code: 200, items: ["{o}"] },
      // Compared by the single read.
      ignore: ["items"],
    },
    post(
      `${path}?fieldValidation=Strict`,
      { code: 400, reason: "BadRequest", message: /strict decoding error: unknown field/ },
      { ...object(content, "{o}-2"), unknown: true },
    ),
    ...invalidSteps(path, object, invalid),
    mergePatch(one, 200, change, { ignore }),
    applyPatch(
      `${one}?fieldManager=applier`,
      { code: 200, body: { metadata: { labels: { applied: "yes" } } } },
      { ...object({}), metadata: { name: "{o}", labels: { applied: "yes" } } },
      { ignore },
    ),
    applyPatch(`${one}?fieldManager=applier&force=true`, 200, object(content), { ignore }),
    ...statusSteps(one, kind),
    {
      // Without a version, which only some kinds accept; the server keeps what it chose, but no finalizer.
      send: `PUT ${one}`,
      body: object(content),
      ignore: put === 200 ? ignore : ["message", "details.causes"],
      expect: { code: put },
    },
    remove(`${one}?propagationPolicy=Background`, 200, { ignore }),
    get(one, { code: 404, reason: "NotFound" }),
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
    return [mergePatch(`${one}/status`, { code: 404, reason: "NotFound" }, { status: {} })];
  }
  return [
    mergePatch(`${one}/status?fieldManager=reporter`, 200, { status, spec: null }, { ignore }),
    get(`${one}/status`, 200, { ignore }),
    ...(invalidStatus === undefined
      ? []
      : [mergePatch(`${one}/status`, { code: 422, reason: "Invalid" }, { status: invalidStatus })]),
  ];
}
