import { createGuard } from "@konverge/guard";
import { auditPageSchema, type AuditEntry } from "@konverge/contracts";
import { createApprovalStore, createControllerRegistry, proposed } from "@konverge/queue";
import { defineSchedule, defineWorkflow } from "@konverge/workflow";
import { expect, onTestFinished, test } from "vitest";
import { until } from "../../support/until.ts";
import { NODE_POOL, openAnnounced } from "../queue/announce.ts";
import { workOn } from "../queue/queue-harness.ts";
import { announceOpenKinds, WIDGET } from "./announce-open-kinds.ts";
import { useApi, type Call } from "./api-harness.ts";
import { operations } from "./api-targets.ts";
import { PATIENT_MS } from "../../support/patient.ts";

const api = useApi();

/** Deliveries of inbound sources have a metric. A logout needs a session (tests of tokens and sign-ins). */
const NOT_RECORDED = ["deliver", "logout"];
const ADMIN = "the-token-of-the-configuration";
const RATE = { ratePerSecond: 1e6, burst: 1e6 };
const REASON = { by: "somebody else", reason: "because" };

const waits = defineWorkflow("waits", { version: 1 }, async (w) => {
  await w.signal("go");
});
const fails = defineWorkflow("fails", { version: 1 }, async (w) => {
  await w.step("body", () => Promise.reject(new Error("no")), { retry: { attempts: 1 } });
});
const nightly = defineSchedule("nightly", { cron: "0 3 * * *", workflow: waits, input: undefined });

interface Prepared {
  readonly path: string;
  readonly body?: object;
}

/** A request that changes something, after the changes that it needs. `call` leaves no entries with the token's name. */
interface Change {
  readonly action: AuditEntry["action"];
  readonly prepare: (call: Call, name: string) => Promise<Prepared> | Prepared;
}

const object = (name: string) => ({ controller: "node-pool", namespace: "demo", name });
const objectPath = (name: string) => `/v1/objects/default/node-pool/demo/${name}`;
const keyOf = (name: string) => `node-pool/default/nodepools.demo.konverge.dev/demo/${name}`;
const mutation = (name: string) => ({
  kind: "Widget",
  name,
  namespace: "demo",
  changes: [{ kind: "set", path: "/spec/size", value: 1 }],
});

async function ok(call: Call, path: string, body: object): Promise<Record<string, unknown>> {
  const response = await call(path, { token: ADMIN, body });
  const text = await response.text();
  expect(response.status, `${path}: ${text}`).toBeLessThan(300);
  return JSON.parse(text) as Record<string, unknown>;
}

/** Starts a run and waits until it has a status. */
async function runIn(
  call: Call,
  {
    workflow,
    id,
    status,
  }: { readonly workflow: string; readonly id: string; readonly status: string },
): Promise<string> {
  await ok(call, "/v1/runs", { workflow, id });
  const path = `/v1/runs/${encodeURIComponent(`${workflow}/default/${id}`)}`;
  await until(`${id} is ${status}`, async () => {
    const response = await call(path, { token: ADMIN });
    return ((await response.json()) as { readonly status: string }).status === status;
  });
  return path;
}
const SIGNAL = { name: "other", by: "somebody else" };
const onRun = (verb: string, body: object = REASON): Change["prepare"] =>
  async function prepare(call, id) {
    const path = await runIn(call, { workflow: "waits", id, status: "waiting" });
    return { path: `${path}/${verb}`, body };
  };
const onSchedule =
  (verb: string, rest: object = {}): Change["prepare"] =>
  () => {
    return { path: `/v1/schedules/default/nightly/${verb}`, body: { ...REASON, ...rest } };
  };
const onGuard =
  (verb: string, rest: object = {}): Change["prepare"] =>
  () => {
    return { path: `/v1/guards/default/${verb}`, body: { ...REASON, ...rest } };
  };
const decision = (verb: string): Change["prepare"] =>
  async function prepare(_call, name) {
    const { redis, prefix } = api.queues;
    const store = createApprovalStore(redis, { prefix, cluster: "default" });
    const proposal = { controller: "node-pool", hash: "a".repeat(64), summary: {}, by: 1 };
    const rest = { role: "operator", requesters: [], since: new Date().toISOString() } as const;
    await store.change(
      keyOf(name),
      (current) => proposed(current, { key: keyOf(name), ...proposal, ...rest }),
      { record: "{}" },
    );
    const path = `/v1/approvals/default/node-pool/demo/${name}/${verb}`;
    return { path, body: { ...REASON, hash: proposal.hash } };
  };

const CHANGES: Readonly<Record<string, Change>> = {
  login: {
    action: "session.create",
    prepare: async () => {
      const token = await api.token("acts-too", { role: "operator" });
      return { path: "/v1/session", body: { token } };
    },
  },
  createReconcile: {
    action: "reconcile",
    prepare: (_, name) => ({ path: "/v1/reconciles", body: object(name) }),
  },
  createReconciles: {
    action: "reconcile",
    prepare: (_, name) => ({ path: "/v1/reconciles/batch", body: { items: [object(name)] } }),
  },
  cancelReconcile: {
    action: "cancel",
    async prepare(call, name) {
      const { id } = await ok(call, "/v1/reconciles", object(name));
      return { path: `/v1/reconciles/${encodeURIComponent(String(id))}/cancel`, body: REASON };
    },
  },
  reconcileObject: {
    action: "reconcile",
    prepare: (_, name) => ({ path: `${objectPath(name)}/reconcile`, body: {} }),
  },
  submitMutation: {
    action: "mutate",
    prepare: (_, name) => ({ path: "/v1/mutations", body: mutation(name) }),
  },
  submitMutations: {
    action: "mutate",
    prepare: (_, name) => ({ path: "/v1/mutations/batch", body: { items: [mutation(name)] } }),
  },
  cancelMutation: {
    action: "mutation.cancel",
    async prepare(call, name) {
      const { id } = await ok(call, "/v1/mutations", mutation(name));
      return { path: `/v1/mutations/${encodeURIComponent(String(id))}` };
    },
  },
  planObject: {
    action: "plan",
    prepare: (_, name) => ({ path: `${objectPath(name)}/plans`, body: {} }),
  },
  approvePlan: { action: "approval.approve", prepare: decision("approve") },
  rejectPlan: { action: "approval.reject", prepare: decision("reject") },
  pauseObject: {
    action: "pause",
    prepare: (_, name) => ({ path: `${objectPath(name)}/pause`, body: REASON }),
  },
  resumeObject: {
    action: "resume",
    async prepare(call, name) {
      await ok(call, `${objectPath(name)}/pause`, REASON);
      return { path: `${objectPath(name)}/resume`, body: REASON };
    },
  },
  pauseQueue: {
    action: "pause",
    prepare: () => ({ path: "/v1/queues/default/nodes/pause", body: REASON }),
  },
  resumeQueue: {
    action: "resume",
    async prepare(call) {
      await ok(call, "/v1/queues/default/nodes/pause", REASON);
      return { path: "/v1/queues/default/nodes/resume", body: REASON };
    },
  },
  pause: {
    action: "pause",
    prepare: (_, name) => ({ path: "/v1/pauses", body: { ...object(name), ...REASON } }),
  },
  resume: {
    action: "resume",
    async prepare(call, name) {
      await ok(call, "/v1/pauses", { ...object(name), ...REASON });
      return { path: "/v1/pauses/resume", body: { ...object(name), ...REASON } };
    },
  },
  releaseDeadLetters: {
    action: "release",
    async prepare(call, name) {
      await ok(call, "/v1/reconciles", object(name));
      const { queue } = await api.access.find("default", "node-pool");
      const worker = workOn(queue, () => ({ kind: "terminal", error: new Error("no") }));
      await until("it is dead-lettered", async () => {
        const { items } = await queue.control.listKeys({ phase: "deadLettered" });
        return items.some(({ key }) => key.endsWith(`/${name}`));
      });
      await worker.stop();
      return { path: "/v1/dead-letters/release", body: { ...object(name), ...REASON } };
    },
  },
  startRun: {
    action: "run.start",
    prepare: (_, id) => ({ path: "/v1/runs", body: { workflow: "waits", id } }),
  },
  signalRun: { action: "run.signal", prepare: onRun("signal", SIGNAL) },
  updateRun: { action: "run.update", prepare: onRun("update", SIGNAL) },
  cancelRun: { action: "run.cancel", prepare: onRun("cancel") },
  pauseRun: { action: "run.pause", prepare: onRun("pause") },
  resumeRun: {
    action: "run.resume",
    async prepare(call, id) {
      const path = await runIn(call, { workflow: "waits", id, status: "waiting" });
      await ok(call, `${path}/pause`, REASON);
      return { path: `${path}/resume`, body: REASON };
    },
  },
  terminateRun: { action: "run.terminate", prepare: onRun("terminate") },
  raiseRun: { action: "run.raise", prepare: onRun("raise", { ...REASON, steps: 5_000 }) },
  retryRun: {
    action: "run.retry",
    async prepare(call, id) {
      const path = await runIn(call, { workflow: "fails", id, status: "failed" });
      return { path: `${path}/retry`, body: REASON };
    },
  },
  actOnRuns: {
    action: "run.pause",
    async prepare(call, id) {
      await runIn(call, { workflow: "waits", id, status: "waiting" });
      const filter = { workflow: "waits", status: "waiting" };
      return { path: "/v1/runs/actions", body: { ...REASON, action: "pause", filter } };
    },
  },
  pauseSchedule: { action: "schedule.pause", prepare: onSchedule("pause") },
  resumeSchedule: { action: "schedule.resume", prepare: onSchedule("resume") },
  triggerSchedule: { action: "schedule.trigger", prepare: onSchedule("trigger") },
  backfillSchedule: {
    action: "schedule.backfill",
    prepare: onSchedule("backfill", { from: "2026-03-28T00:00:00Z", to: "2026-03-29T00:00:00Z" }),
  },
  isolateGuard: { action: "guard.isolate", prepare: onGuard("isolate") },
  resetGuard: { action: "guard.reset", prepare: onGuard("reset") },
  setGuardRate: { action: "guard.rate", prepare: onGuard("rate", { ratePerSecond: 50 }) },
};

/** Two entries: one before the first run is changed, one with their number. */
const ENTRIES: Readonly<Record<string, number>> = { actOnRuns: 2 };

/** What a worker leaves in Redis. */
async function announce(): Promise<void> {
  const { queues } = api;
  const { url, prefix } = queues;
  const place = { redis: { url, deadlineMs: PATIENT_MS }, prefix, cluster: "default" };
  const runs = await openAnnounced(queues, [waits, fails]);
  runs.work({ workflows: [waits, fails] });
  runs.schedule([nightly]);
  await until("the schedule is known", async () => (await runs.schedules.list()).length > 0);
  await announceOpenKinds(queues, [WIDGET]);
  const guard = await createGuard({ ...place, workerId: "w", limits: { ratePerSecond: 100 } });
  await guard.close();
  const registry = createControllerRegistry(place);
  onTestFinished(() => registry.close());
  const { name } = NODE_POOL;
  registry.heartbeat({
    workerId: "w",
    controllers: [name],
    definitions: { [name]: { kind: "NodePool", digest: "1" } },
    workflows: { waits: 1, fails: 1 },
    role: "all",
    version: "1",
    startedAt: new Date().toISOString(),
    host: "h",
    runsPlans: true,
  });
  await until("the worker is known", async () => (await api.access.workers("default")).length > 0);
}

async function entries(call: Call): Promise<AuditEntry[]> {
  await api.access.audit.close();
  const response = await call("/v1/audit?limit=1000", { token: ADMIN });
  return auditPageSchema.parse(await response.json()).items;
}

const changes = operations.filter(
  ({ method, operationId }) => method !== "GET" && !NOT_RECORDED.includes(operationId),
);

test("every operation that changes something has a request here, and the reverse", () => {
  const ids = changes.map(({ operationId }) => operationId);
  expect(Object.keys(CHANGES).toSorted()).toEqual(ids.toSorted());
});

test("every change has one entry, whether it is made or refused", async () => {
  await announce();
  const call = api.serve({ isLoopback: false, token: ADMIN, rate: RATE });
  const seen = new Set<string>();
  const wrong: unknown[] = [];
  for (const { method, operationId } of changes) {
    const change = CHANGES[operationId] as Change;
    const name = operationId.toLowerCase();
    // Authors of their own, because equal entries of a second share one entry with a count.
    const viewer = await api.token(`looks-${name}`);
    const acts = await api.token(`acts-${name}`, { role: "operator" });
    const { path, body } = await change.prepare(call, name);
    const send = (token: string | undefined) => call(path, { method, token, body });
    const outside = await send(undefined);
    const refused = await send(viewer);
    const made = await send(acts);
    const statuses = [outside.status, refused.status, made.status];
    const isLogin = operationId === "login";
    if (isLogin ? made.status >= 300 : statuses[0] !== 401 || statuses[1] !== 403) {
      wrong.push([operationId, ...statuses]);
    }
    if (made.status >= 300) wrong.push([operationId, await made.text()]);
    const fresh = (await entries(call)).filter(({ id }) => !seen.has(id));
    for (const { id } of fresh) seen.add(id);
    const by = isLogin ? "acts-too" : `acts-${name}`;
    const own = fresh.filter((entry) => entry.by === by);
    const expected = ENTRIES[operationId] ?? 1;
    const sum = own.reduce((all, { count = 1 }) => all + (isLogin ? count : 1), 0);
    if (sum !== (isLogin ? 3 : expected)) wrong.push([operationId, "entries", own]);
    if (own.some(({ action }) => action !== change.action)) wrong.push([operationId, own]);
    if (isLogin) continue;
    const refusals = fresh.filter(({ action }) => action === "refused");
    const found = refusals.map((entry) => `${entry.by} ${entry.filter} ${entry.count}`).toSorted();
    const wanted = [
      `looks-${name} ${operationId}: forbidden 1`,
      `unknown ${operationId}: unauthorized 1`,
    ];
    if (JSON.stringify(found) !== JSON.stringify(wanted)) wrong.push([operationId, found]);
  }
  expect(wrong).toEqual([]);
  const reports = await api.access.audit.verify();
  expect(reports.map(({ fault }) => fault)).toEqual([undefined, undefined]);
});
