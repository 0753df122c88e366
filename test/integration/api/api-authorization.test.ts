import { defined } from "@konverge/core";
import { problemSchema, type Role, type Scope } from "@konverge/contracts";
import { createGuard } from "@konverge/guard";
import {
  createControllerRegistry,
  createHistoryWriter,
  type ControllerRegistry,
} from "@konverge/queue";
import { afterEach, expect, test } from "vitest";
import { until } from "../../support/until.ts";
import { announceOpenKinds, PLANET, WIDGET } from "./announce-open-kinds.ts";
import { useApi, type Call, type Sent } from "./api-harness.ts";
import {
  KINDS,
  mutationOf,
  operations,
  requestOf,
  TARGETS,
  type Operation,
  type Target,
} from "./api-targets.ts";
import { workOn } from "../queue/queue-harness.ts";
import { attemptRow, historyBatch } from "../../support/history-batch.ts";

const harness = useApi({ announces: false });
const ADMIN_TOKEN = "the-token-of-the-configuration";

type Place = Partial<Pick<Target, "cluster" | "controller" | "namespace">>;

/** The place that an operation needs within the scope: the whole of it, a part (a list omits the rest), or none. */
interface Rule {
  readonly role: Role | "none";
  readonly needs: "whole" | "part" | "nothing";
  readonly place: (target: Target, isNarrow: boolean) => Place;
}
const whole = (role: Role, place: Rule["place"]): Rule => ({ role, needs: "whole", place });
const part = (role: Role, place: Rule["place"]): Rule => ({ role, needs: "part", place });
const nothing = (role: Rule["role"]): Rule => ({ role, needs: "nothing", place: () => ({}) });

const ofCluster: Rule["place"] = ({ cluster }) => ({ cluster });
const ofController: Rule["place"] = ({ cluster, controller }) => ({ cluster, controller });
const ofObject: Rule["place"] = ({ cluster, controller, namespace }) => ({
  cluster,
  controller,
  namespace,
});
const ofRun: Rule["place"] = ({ cluster, workflow }) => ({
  cluster,
  controller: `workflow.${workflow}`,
  namespace: "_",
});
/** A list with optional filters. */
const ofList: Rule["place"] = (target, isNarrow) =>
  isNarrow ? ofObject(target, true) : ofCluster(target, false);

/** The controller of mutations is built in; their targets differ by cluster and namespace only. */
const ofMutation: Rule["place"] = ({ cluster, namespace }) => ({
  cluster,
  controller: "mutations",
  namespace,
});
const ofMutations: Rule["place"] = (target, isNarrow) =>
  isNarrow ? ofMutation(target, true) : { cluster: target.cluster, controller: "mutations" };

const registries: ControllerRegistry[] = [];
afterEach(async () => {
  await Promise.all(registries.splice(0).map((registry) => registry.close()));
});

/** The rule of every operation. A new route needs one. */
const RULES: Readonly<Record<string, Rule>> = {
  login: nothing("none"),
  logout: nothing("none"),
  whoami: nothing("viewer"),
  getOpenapi: nothing("viewer"),
  createReconcile: whole("operator", ofObject),
  createReconciles: nothing("operator"),
  listReconciles: part("viewer", ofList),
  getReconcile: whole("viewer", ofObject),
  cancelReconcile: whole("operator", ofObject),
  submitMutation: whole("operator", ofMutation),
  submitMutations: nothing("operator"),
  listMutations: part("viewer", ofMutations),
  listMutationKinds: part("viewer", (target) => ofMutations(target, false)),
  getMutation: whole("viewer", ofMutation),
  // The sender proves that it has the secret of the source.
  deliver: nothing("none"),
  listSources: part("viewer", ofCluster),
  // A message is about objects of all controllers and namespaces.
  listNotifications: whole("viewer", ofCluster),
  cancelMutation: whole("operator", ofMutation),
  getObject: whole("viewer", ofObject),
  getContention: whole("viewer", ofObject),
  getLiveObject: whole("viewer", ofObject),
  explainObject: whole("viewer", ofObject),
  planObject: whole("operator", ofObject),
  listPlans: whole("viewer", ofObject),
  getPlan: whole("viewer", ofObject),
  listApprovals: part("viewer", ofList),
  getApproval: whole("viewer", ofObject),
  listDrift: part("viewer", ofList),
  getDrift: whole("viewer", ofObject),
  approvePlan: whole("operator", ofObject),
  rejectPlan: whole("operator", ofObject),
  listObjectAttempts: whole("viewer", ofObject),
  getAttempt: whole("viewer", ofObject),
  getAttemptRecording: whole("admin", ofObject),
  getObjectLogs: whole("viewer", ofObject),
  reconcileObject: whole("operator", ofObject),
  pauseObject: whole("operator", ofObject),
  resumeObject: whole("operator", ofObject),
  listControllers: part("viewer", ofCluster),
  listWorkers: part("viewer", ofCluster),
  listQueues: part("viewer", ofCluster),
  pauseQueue: whole("operator", ofController),
  resumeQueue: whole("operator", ofController),
  listKeys: part("viewer", ofList),
  listOperatorActions: whole("viewer", ofController),
  listPauses: part("viewer", ofCluster),
  pause: whole("operator", ofObject),
  resume: whole("operator", ofObject),
  listDeadLetters: part("viewer", ofList),
  releaseDeadLetters: whole("operator", ofObject),
  startRun: whole("operator", ofRun),
  listRuns: {
    role: "viewer",
    needs: "part",
    place: (target, isNarrow) => (isNarrow ? ofRun(target, true) : ofCluster(target, false)),
  },
  listSchedules: part("viewer", ofCluster),
  getSchedule: part("viewer", ofCluster),
  pauseSchedule: part("operator", ofCluster),
  resumeSchedule: part("operator", ofCluster),
  triggerSchedule: part("operator", ofCluster),
  backfillSchedule: part("operator", ofCluster),
  getRun: whole("viewer", ofRun),
  getRunLogs: whole("viewer", ofRun),
  getRunHistory: whole("viewer", ofRun),
  listRunHistories: whole("viewer", ofRun),
  signalRun: whole("operator", ofRun),
  cancelRun: whole("operator", ofRun),
  actOnRuns: {
    role: "operator",
    needs: "part",
    place: (target, isNarrow) => (isNarrow ? ofRun(target, true) : ofCluster(target, false)),
  },
  pauseRun: whole("operator", ofRun),
  resumeRun: whole("operator", ofRun),
  raiseRun: whole("operator", ofRun),
  terminateRun: whole("operator", ofRun),
  updateRun: whole("operator", ofRun),
  retryRun: whole("operator", ofRun),
  listAttempts: part("viewer", ofList),
  getContentionReport: part("viewer", ofCluster),
  listRollups: part("viewer", ofController),
  getActivity: {
    role: "viewer",
    needs: "part",
    place: (target, isNarrow) => (isNarrow ? ofController(target, true) : ofCluster(target, false)),
  },
  listClusters: nothing("viewer"),
  listGuards: nothing("viewer"),
  listLimits: nothing("viewer"),
  getGuard: part("viewer", ofCluster),
  isolateGuard: whole("operator", ofCluster),
  resetGuard: whole("operator", ofCluster),
  setGuardRate: whole("operator", ofCluster),
  getOverview: part("viewer", ofCluster),
  listAudit: nothing("admin"),
  followEvents: part("viewer", ofList),
};

interface Credentials {
  readonly sent: Pick<Sent, "token" | "headers">;
  readonly role?: Role;
  readonly scope: Scope;
}
const SCOPES: Readonly<Record<string, Scope>> = {
  everywhere: {},
  "one cluster": { clusters: ["default"] },
  "one controller": { controllers: ["ctlblue", "workflow.wfblue"] },
  "one namespace": { namespaces: ["nsblue"] },
  "cluster-scoped objects": { namespaces: ["_"] },
  "one of each": { clusters: ["default"], controllers: ["ctlblue"], namespaces: ["nsblue"] },
  elsewhere: { clusters: ["clusterred"], controllers: ["ctlred"], namespaces: ["nsred"] },
};

/** Every kind of caller, by name. Those without a role are rejected. */
async function credentials(): Promise<Record<string, Credentials>> {
  const callers: Record<string, Credentials> = {};
  for (const [where, scope] of Object.entries(SCOPES)) {
    for (const role of ["viewer", "operator", "admin"] as const) {
      const name = `${role}-${where.replaceAll(" ", "-")}`;
      const token = await harness.token(name, { role, scope });
      callers[name] = { sent: { token }, role, scope };
    }
  }
  const good = await harness.token("good", { role: "admin" });
  const expired = await harness.token("expired", { role: "admin", ttlMs: 1_000 });
  const revoked = await harness.token("revoked", { role: "admin" });
  await harness.access.tokens.revoke("revoked");
  await until(
    "it has expired",
    async () => (await harness.access.tokens.find(expired)) === undefined,
  );
  const invalid = (name: string, headers: Record<string, string>) => {
    callers[name] = { sent: { headers }, scope: {} };
  };
  callers["configured admin"] = { sent: { token: ADMIN_TOKEN }, role: "admin", scope: {} };
  invalid("no token", {});
  invalid("an expired token", { authorization: `Bearer ${expired}` });
  invalid("a revoked token", { authorization: `Bearer ${revoked}` });
  invalid("another secret", { authorization: `Bearer ${good.slice(0, -4)}AAAA` });
  invalid("an unknown token", { authorization: `Bearer kvg_${"0".repeat(12)}_${"A".repeat(43)}` });
  invalid("an empty token", { authorization: "Bearer " });
  invalid("two tokens", { authorization: `Bearer ${good} ${good}` });
  invalid("another scheme", { authorization: `Basic ${good}` });
  invalid("an unknown cookie", { cookie: "konverge_session=x", "sec-fetch-site": "same-origin" });
  return callers;
}

const covers = (scope: Scope, { cluster, controller, namespace }: Place, partSuffices: boolean) =>
  (
    [
      [scope.clusters, cluster],
      [scope.controllers, controller],
      [scope.namespaces, namespace],
    ] as const
  ).every(([allowed, value]) =>
    allowed === undefined ? true : value === undefined ? partSuffices : allowed.includes(value),
  );

function isAllowed(rule: Rule, { role, scope }: Credentials, place: Place): boolean {
  const roles = ["viewer", "operator", "admin"];
  if (rule.role === "none") return true;
  if (role === undefined || roles.indexOf(role) < roles.indexOf(rule.role)) return false;
  return rule.needs === "nothing" || covers(scope, place, rule.needs === "part");
}

interface Made extends ReturnType<typeof requestOf> {
  readonly where: string;
  readonly isNarrow: boolean;
  readonly place: Place;
}

/** The requests of an operation for all targets. Many operations have no filters, so that narrow and wide are the same. */
function requestsOf(operation: Operation, rule: Rule): readonly Made[] {
  const made = new Map<string, Made>();
  for (const [where, target] of Object.entries(TARGETS)) {
    for (const isNarrow of [true, false]) {
      const request = requestOf(operation, target, isNarrow);
      const place = rule.place(target, isNarrow);
      const text = JSON.stringify([request, place]);
      if (!made.has(text)) made.set(text, { where, isNarrow, place, ...request });
    }
  }
  return [...made.values()];
}

/** The names of the targets that a scope does not cover. */
function foreignNames({ scope }: Credentials): string[] {
  const { clusters, controllers, namespaces } = scope;
  const outside = (names: readonly string[], allowed: readonly string[] | undefined) =>
    allowed === undefined ? [] : names.filter((name) => !allowed.includes(name));
  const foreignControllers = outside(["ctlblue", "ctlred", "ctlwide"], controllers);
  const hasNoRuns = namespaces !== undefined && !namespaces.includes("_");
  const workflows = ["wfblue", "wfred", "wfwide"].filter(
    (name) => hasNoRuns || controllers?.includes(`workflow.${name}`) === false,
  );
  return [
    ...outside(["clusterred"], clusters),
    ...foreignControllers,
    ...outside(["nsblue", "nsred"], namespaces),
    ...(namespaces?.includes("_") === false ? ["obj-ctlwide-_"] : []),
    // Announced names are not divided by namespace.
    ...workflows.map((name) => (controllers === undefined ? `run-${name}` : name)),
  ];
}

/** Stores requests, attempts, pauses, dead letters, runs, contention, guards and audit entries of all targets. */
async function fill(): Promise<void> {
  const { prefix, target: redis } = harness.queues;
  const call = harness.serve();
  const by = { by: "ada", reason: "because" };
  const common = { group: "demo.konverge.dev", version: "v1", kind: "Thing" };
  for (const cluster of ["default", "clusterred"]) {
    const registry = createControllerRegistry({ redis, prefix, cluster });
    const controllers = ["ctlblue", "ctlred", "ctlwide"].map((name) => ({
      ...common,
      name,
      cluster,
      resource: KINDS[name] ?? "",
      scope: name === "ctlwide" ? ("Cluster" as const) : ("Namespaced" as const),
      sources: [{ kind: "poll" as const, name: `of-${name}` }],
    }));
    const workflows = ["wfblue", "wfred", "wfwide"];
    await registry.announce(
      controllers,
      workflows.map((name) => ({ name, version: 1 })),
    );
    const names = Object.keys(KINDS);
    registry.heartbeat({
      workerId: "w",
      controllers: names,
      definitions: Object.fromEntries(names.map((name) => [name, { kind: "Thing", digest: "1" }])),
      workflows: Object.fromEntries(workflows.map((name) => [name, 1])),
      role: "all",
      version: "1",
      startedAt: new Date().toISOString(),
      host: "h",
    });
    registries.push(registry);
    const guard = await createGuard({
      redis,
      prefix,
      cluster,
      workerId: "w",
      limits: { ratePerSecond: 100 },
    });
    await guard.close();
  }
  const ok = async (path: string, body: unknown) => {
    const response = await call(path, { body });
    expect(response.status, await response.clone().text()).toBeLessThan(300);
  };
  for (const target of Object.values(TARGETS)) {
    const { cluster, controller, namespace, name, workflow } = target;
    await announceOpenKinds(harness.queues, [WIDGET, PLANET], cluster);
    await ok("/v1/mutations", { ...mutationOf(target), id: name });
    const object = { cluster, controller, name, ...(namespace === "_" ? {} : { namespace }) };
    await ok("/v1/reconciles", object);
    const { queue } = await harness.access.find(cluster, controller);
    const worker = workOn(queue, () => ({ kind: "terminal", error: new Error("no") }));
    await until("it is dead-lettered", async () => {
      const { items } = await queue.control.listKeys({ phase: "deadLettered" });
      return items.some(({ key }) => key.endsWith(`/${name}`));
    });
    await worker.stop();
    await ok("/v1/pauses", { ...object, ...by });
    await ok("/v1/runs", { cluster, workflow, id: `run-${workflow}`, by: "ada" });
    const key = `${controller}/${cluster}/${KINDS[controller]}.demo.konverge.dev/${namespace}/${name}`;
    const writer = createHistoryWriter({
      redis,
      prefix,
      cluster,
      budgetBytes: 1e6,
      onError: () => undefined,
    });
    const row = attemptRow({
      key,
      outcome: "conflict",
      managers: [`manager-of-${name}`],
      conflicts: 1,
      writes: 0,
    });
    const pair = { manager: "m", path: "spec", count: 30 };
    const loop = {
      kind: "requeue",
      count: 3,
      step: 1,
      sinceMs: 1,
      untilMs: Date.now() + 1e6,
      worker: "w",
    };
    const batch = historyBatch({
      rows: [{ row, recordBytes: 1 }],
      contention: [
        {
          object: `${KINDS[controller]}.demo.konverge.dev/${namespace}/${name}`,
          conflicts: 30,
          pairs: [
            { kind: "conflict", ...pair },
            { kind: "takeover", ...pair },
          ],
        },
      ],
      rollups: [
        { controller, minute: Math.floor(Date.now() / 60_000), counts: { "outcome.done": 1 } },
      ],
      loops: new Map([[key, JSON.stringify(loop)]]),
    });
    await until("it is written", () => writer.flush(batch).catch(() => undefined));
    await writer.close();
  }
}

test("every operation of the document has a rule, and every rule an operation", () => {
  const ids = operations.map(({ operationId }) => operationId);
  expect(Object.keys(RULES).toSorted()).toEqual(ids.toSorted());
});

const serve = (): Call =>
  harness.serve({
    isLoopback: false,
    token: ADMIN_TOKEN,
    rate: { ratePerSecond: 1e9, burst: 1e9 },
  });

test("every operation, target and caller is decided by the rule, and no response has a name outside of the scope", async () => {
  await fill();
  const callers = await credentials();
  const call = serve();
  const wrong: unknown[] = [];
  let cells = 0;
  for (const operation of operations) {
    const rule = RULES[operation.operationId];
    if (rule === undefined) throw new Error(`no rule for ${operation.operationId}`);
    for (const { where, isNarrow, path, body, place } of requestsOf(operation, rule)) {
      await Promise.all(
        Object.entries(callers).map(async ([who, caller]) => {
          cells++;
          const abort = new AbortController();
          const response = await call(path, {
            ...caller.sent,
            method: operation.method,
            signal: abort.signal,
            ...defined({ body }),
          });
          const cell = [who, operation.operationId, where, isNarrow ? "narrow" : "wide"];
          const isStream = response.headers.get("content-type") === "text/event-stream";
          const text = isStream ? "" : await response.text();
          if (isStream) await response.body?.cancel();
          const { status } = response;
          if (!(status in operation.responses)) wrong.push([...cell, status, "undocumented"]);
          if (status >= 400) problemSchema.parse(JSON.parse(text));
          // The login answers 401 to an unknown token.
          if (rule.role !== "none") {
            const isRefused = status === 401 || status === 403;
            if (isRefused === isAllowed(rule, caller, place)) wrong.push([...cell, status]);
            if ((status === 401) !== (caller.role === undefined)) wrong.push([...cell, status]);
          }
          if (caller.role === undefined) return;
          const headers = [...response.headers].flat().join("\n");
          const given = decodeURIComponent(path) + JSON.stringify(body ?? "");
          const told = decodeURIComponent(
            `${text}\n${headers}`.replaceAll(/%(?![0-9a-f]{2})/gi, "%25"),
          );
          for (const name of foreignNames(caller)) {
            if (!told.includes(name) || given.includes(name)) continue;
            wrong.push([...cell, "tells", name, text.slice(0, 200)]);
          }
        }),
      );
    }
  }
  expect(wrong).toEqual([]);
  expect(cells).toBeGreaterThan(2 * operations.length * Object.keys(callers).length);
});

test("metrics and raw jobs require a token without a scope", async () => {
  const callers = await credentials();
  const call = serve();
  for (const path of ["/metrics", "/jobs", "/jobs/api/queues"]) {
    for (const [who, { sent, role, scope }] of Object.entries(callers)) {
      const { status } = await call(path, sent);
      const expected = role === undefined ? 401 : Object.keys(scope).length === 0 ? 200 : 403;
      expect([who, path, status]).toEqual([who, path, expected]);
    }
  }
});
