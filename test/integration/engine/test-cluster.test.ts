import { randomUUID } from "node:crypto";
import {
  startTestCluster,
  testWorkflow,
  type TestClusterOptions,
} from "../../../apps/cli/src/testing/index.ts";
import {
  conditions,
  defineController,
  defineResource,
  generationChanged,
  reportProgress,
} from "@konverge/engine";
import { TerminalError, type ApiObject } from "@konverge/core";
import {
  ConfigMap,
  DaemonSet,
  Deployment,
  Job,
  PersistentVolumeClaim,
  Pod,
  ReplicaSet,
  StatefulSet,
} from "@konverge/kube/kinds";
import { ignoreNotFound } from "@konverge/kube";
import { complete, defineWorkflow, ready } from "@konverge/workflow";
import { Redis } from "ioredis";
import { expect, test } from "vitest";
import { z } from "zod";
import { until } from "../../support/until.ts";

const Task = defineResource({
  group: "cluster.test.konverge.dev",
  version: "v1",
  kind: "Task",
  spec: z.object({ fails: z.boolean().default(false) }),
  status: z.object({ observedGeneration: z.int(), conditions, run: z.string() }),
});
const Other = defineResource({
  group: "cluster.test.konverge.dev",
  version: "v1",
  kind: "Other",
  spec: z.object({}),
});

const KUBECONFIG = process.env["KONVERGE_TEST_KUBECONFIG"];
type NamedServer = readonly [string, NonNullable<TestClusterOptions["server"]>];
const SERVERS: readonly NamedServer[] = [
  ["the embedded API server", "embedded"],
  ...(KUBECONFIG === undefined ? [] : [["kube-apiserver", { kubeconfig: KUBECONFIG }] as const]),
];

const cleaned: string[] = [];
const tasks = defineController({
  name: "tasks",
  for: Task,
  async reconcile({ object: task, kube }) {
    if (task.spec.fails) throw new TerminalError("this task cannot be done");
    await kube.mutateStatus(task, (draft) => {
      reportProgress(draft, { state: "ready", reason: "Done" });
    });
  },
  async cleanup({ object }) {
    cleaned.push(object.metadata.name);
  },
});
const greet = defineWorkflow(
  "greet",
  { version: 1, input: z.object({ name: z.string() }), kinds: [ConfigMap] },
  async (w, { name }) => {
    await w.step("ask", (k) =>
      k.create({ apiVersion: "v1", kind: "ConfigMap", metadata: { namespace: "default", name } }),
    );
    const answer = await w.signal("answer", { timeout: "1h" });
    return { answer };
  },
);
const starters = defineController({
  name: "starters",
  for: Task,
  async reconcile({ object: task, kube, startRun }) {
    const input = { name: `${task.metadata.name}-asked` };
    const run = await startRun(greet, input, { onEnd: "reconcile" });
    await kube.mutateStatus(task, (draft) => {
      draft.status.run = run.id;
      reportProgress(draft, {
        state: run.status === "done" ? "ready" : "reconciling",
        reason: run.status,
      });
    });
  },
});
const start = (options: Partial<TestClusterOptions> = {}) =>
  startTestCluster({ controllers: [tasks], ...options });
const named = (name: string, fails = false) => ({ metadata: { name }, spec: { fails } });

test("reconciled waits for the last applied change, not for an earlier attempt", async () => {
  await using k = await start();
  const first = await k.reconciled(await k.apply(Task, named("a")));
  expect(first.status?.observedGeneration).toBe(1);
  const failing = await k.apply(Task, named("a", true));
  expect(failing.metadata.generation).toBe(2);
  const again = await k.reconciled(await k.apply(Task, named("a", false)));
  expect(again.status?.observedGeneration).toBe(3);
  expect((await k.attempts(again)).at(-1)?.outcome).toBe("done");
});

test("starts only the API server with the given kinds, without controllers", async () => {
  await using k = await start({ controllers: [], resources: [Other] });
  const other = await k.apply(Other, { metadata: { name: "a" }, spec: {} });
  expect((await k.kube.get(Other, "a")).metadata.uid).toBe(other.metadata.uid);
  expect([k.log, k.calls()]).toEqual([[], []]);
});

test("ignores attempts at older versions, so waiting for a filtered change times out", async () => {
  const picky = defineController({
    name: "picky",
    for: { type: Task, predicate: generationChanged },
    reconcile: async () => undefined,
  });
  await using k = await start({ controllers: [picky], deadlineMs: 1_000 });
  const task = await k.apply(Task, named("f"));
  await until("the first attempt has ended", async () => (await k.attempts(task)).length === 1);
  const labelled = { metadata: { name: "f", labels: { colour: "blue" } }, spec: { fails: false } };
  await expect(k.reconciled(await k.apply(Task, labelled))).rejects.toThrow(
    "attempt 1 of picky ended with done",
  );
});

test("reports the last attempt at the deadline", async () => {
  await using k = await start({ resources: [Other], deadlineMs: 1_000 });
  const failing = await k.apply(Task, named("b", true));
  await until("the attempt has ended", async () => (await k.attempts(failing)).length === 1);
  await expect(k.reconciled(failing)).rejects.toThrow(
    /waited 1000 ms for Task b to be reconciled: attempt 1 of tasks ended with terminal, .*this task cannot be done/,
  );
  const other = await k.apply(Other, { metadata: { name: "c" } });
  await expect(k.reconciled(other)).rejects.toThrow(/no controller of this test reconciles Other/);
  await expect(k.gone(other)).rejects.toThrow(/waited 1000 ms for Other c to be deleted/);
});

test("gone includes the cleanup; calls are those of the worker and can be cleared", async () => {
  await using k = await start();
  const task = await k.reconciled(await k.apply(Task, named("d")));
  expect(k.calls({ type: Task, subresource: "status", code: 200 })).toMatchObject([
    { verb: "patch", name: "d", namespace: "default" },
  ]);
  k.clearCalls();
  expect(k.calls({ type: Task })).toEqual([]);
  await k.delete(task);
  await k.gone(task);
  expect(cleaned).toContain("d");
  expect(k.calls({ verb: "delete" })).toEqual([]);
});

test.for(SERVERS)("executes the runs that a controller starts, on %s", async ([, server]) => {
  await using k = await start({
    controllers: [starters],
    workflows: [greet],
    server,
    deadlineMs: 60_000,
  });
  const name = `whole-${Date.now().toString(36)}`;
  const task = await k.reconciled(await k.apply(Task, named(name)));
  const id = String(task.status?.run);
  await k.until("the run waits", async () => (await k.run(id))?.status === "waiting");
  expect(await k.kube.find(ConfigMap, `${name}-asked`)).toBeDefined();
  await k.signal(id, "answer", { ok: true });
  await k.until("the task is ready", async () => {
    const { status } = await k.kube.get(Task, name);
    return status?.conditions?.some(({ type, status: is }) => type === "Ready" && is === "True");
  });
  expect((await k.run(id))?.result).toEqual({ answer: { ok: true } });
});

test.for(SERVERS)("offers the calls of a handler to the test, on %s", async ([, server]) => {
  await using k = await start({ controllers: [], resources: [Task], server });
  const name = `kube-${Date.now().toString(36)}`;
  const owner = await k.apply(Task, named(name));
  const made = await k.kube.create(ConfigMap, { name, ownedBy: owner, data: { a: "1" } });
  expect(() => Object.assign(made, { data: {} })).toThrow(TypeError);
  await k.kube.mutate(made, (draft) => {
    draft.data = { a: "2" };
  });
  expect((await k.kube.list(ConfigMap, { ownedBy: owner })).map(({ data }) => data)).toEqual([
    { a: "2" },
  ]);
  await k.kube.mutateStatus(owner, (draft) => {
    draft.status.run = "r";
  });
  expect((await k.kube.get(Task, name)).status?.run).toBe("r");
  const applied = { ...owner, metadata: { name, namespace: "default" } };
  expect((await k.kube.apply(Task, applied, { force: true })).spec).toEqual({ fails: false });
  const draft = { name: `${name}-child`, ownedBy: owner, data: { a: "3" } };
  const child = await k.apply(ConfigMap, draft);
  expect(child.metadata).toMatchObject({
    namespace: "default",
    ownerReferences: [{ uid: owner.metadata.uid, controller: true }],
  });
  expect(await k.kube.apply(ConfigMap, draft)).toEqual(child);
  expect(await k.kube.find(ConfigMap, "none-of-these")).toBeUndefined();
  await k.kube.delete(made);
  await k.kube.delete(made);
  expect(await k.kube.find(ConfigMap, name)).toBeUndefined();
});

test.runIf(KUBECONFIG !== undefined)("names what only the embedded API server can do", async () => {
  await using k = await start({ controllers: [], server: { kubeconfig: String(KUBECONFIG) } });
  expect(() => k.calls()).toThrow(/no log of calls; leave out `server`, or set it to "envtest"/);
  const fault = { effect: { kind: "answer", code: 500 } } as const;
  expect(() => k.inject(fault)).toThrow(/only the embedded API server has faults/);
});

test.runIf(KUBECONFIG !== undefined)(
  "starts a real API server and reads its log of calls",
  async () => {
    await using k = await start({ server: "envtest", deadlineMs: 60_000 });
    const task = await k.reconciled(await k.apply(Task, named("real")));
    await k.until("the log has the call", () => k.calls({ subresource: "status" }).length > 0);
    expect(k.calls({ subresource: "status", code: 200 })).toMatchObject([{ name: "real" }]);
    await k.delete(task);
    await k.gone(task);
  },
);

test("stop ends open waits and leaves nothing in Redis", async () => {
  const redis = new Redis(process.env["REDIS_URL"] ?? "");
  const k = await start();
  // Other test files start such clusters in this Redis at the same time; only this one has the object.
  const name = `only-${randomUUID()}`;
  await k.reconciled(await k.apply(Task, named(name)));
  const [key = ""] = await redis.keys(`test-*/key/*${name}`);
  const [prefix = ""] = /^test-[0-9a-f]{12}:/.exec(key) ?? [];
  expect(prefix).not.toBe("");
  await k.stop();
  expect(await redis.keys(`${prefix}*`)).toEqual([]);
  await expect(fetch(k.client.server)).rejects.toThrow("fetch failed");
  await redis.quit();
});

test("an owner's deletion deletes its objects, and a deleted Pod is removed", async () => {
  await using k = await startTestCluster({ deadlineMs: 60_000 });
  const owner = await k.apply(ConfigMap, { metadata: { name: "owner" } });
  const { apiVersion, kind, metadata } = owner;
  const reference = { apiVersion, kind, name: metadata.name, uid: metadata.uid ?? "" };
  const owned = { name: "owned", ownerReferences: [reference] };
  const map = await k.apply(ConfigMap, { metadata: owned });
  const spec = { nodeName: "node", containers: [{ name: "a", image: "a" }] };
  const pod = await k.apply(Pod, { metadata: owned, spec });
  await k.delete(owner);
  await k.gone(map);
  await k.gone(pod);
  expect(await k.client.get(ConfigMap, map.metadata).catch(ignoreNotFound)).toBeUndefined();
});

test.for(SERVERS)(
  "setReady, completeJob and failJob end the waits of a run, on %s",
  async ([, server]) => {
    await using k = await startTestCluster({ server, deadlineMs: 60_000 });
    const { client } = k;
    const name = `status-${process.pid}-${Date.now()}`;
    const metadata = { namespace: "default", name };
    const labels = { app: name };
    const containers = [{ name: "a", image: "a" }];
    const template = { metadata: { labels }, spec: { containers } };
    const workload = { replicas: 2, selector: { matchLabels: labels }, template };
    const jobs = { template: { spec: { containers, restartPolicy: "Never" } } };
    const storage = { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } };
    const made = [
      await client.create(Deployment, { metadata, spec: workload }),
      await client.create(ReplicaSet, { metadata, spec: workload }),
      await client.create(StatefulSet, { metadata, spec: { ...workload, serviceName: name } }),
      await client.create(DaemonSet, { metadata, spec: { selector: workload.selector, template } }),
      await client.create(Pod, {
        metadata,
        spec: { containers, automountServiceAccountToken: false },
      }),
      await client.create(PersistentVolumeClaim, { metadata, spec: storage }),
    ];
    const job = await client.create(Job, { metadata, spec: jobs });
    const other = await client.create(Job, {
      metadata: { ...metadata, name: `${name}-2` },
      spec: jobs,
    });
    const refOf = ({ apiVersion, kind, metadata: at }: ApiObject) => ({
      apiVersion,
      kind,
      namespace: "default",
      name: at.name,
    });
    const waiting = defineWorkflow("waiting", { version: 1 }, async (w) => {
      for (const object of made) await w.waitFor(object.kind, ready(refOf(object)));
      await w.waitFor("job", complete(refOf(job)));
      await w.waitFor("other", complete(refOf(other)));
    });
    const t = testWorkflow(waiting, undefined, { kube: client });
    for (const object of made) {
      const before = await t.settle();
      expect(before).toMatchObject({ status: "waiting", waits: [{ step: object.kind }] });
      await k.setReady(object);
    }
    expect((await t.settle()).waits?.[0]?.step).toBe("job");
    await k.completeJob(job);
    expect((await t.settle()).waits?.[0]?.step).toBe("other");
    await k.failJob(other, "too many failures");
    expect(await t.settle()).toMatchObject({
      status: "failed",
      error: { message: expect.stringContaining("too many failures") },
    });
    await expect(k.setReady(job)).rejects.toThrow("use completeJob or failJob");
    await expect(k.completeJob(made[0] as ApiObject)).rejects.toThrow("need a Job of batch/v1");
    for (const object of [...made, job, other]) {
      const type = await client.resolveType(object.apiVersion, object.kind);
      await client.delete(type, object.metadata, { propagationPolicy: "Background" });
    }
  },
);
