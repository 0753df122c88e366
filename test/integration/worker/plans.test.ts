import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createClient, type Client } from "@konverge/client";
import type { PlanRecord } from "@konverge/records";
import { child, defineController, type Controller, type ReconcileContext } from "@konverge/engine";
import { ConfigMap, Secret } from "@konverge/kube/kinds";
import { defineConfig } from "@konverge/worker";
import { CoreV1Api } from "@kubernetes/client-node";
import { expect, onTestFinished, test } from "vitest";
import type { Widget } from "../kube/kube-servers.ts";
import { planFleet } from "../../../apps/cli/src/fleet/plan-fleet.ts";
import { openProgressFile } from "../../../apps/cli/src/fleet/progress-file.ts";
import { until } from "../../support/until.ts";
import { blockOf, functionOf } from "../docs/load-block.ts";
import { openApi } from "./open-api.ts";
import { useWorkers } from "./worker-harness.ts";

const workers = useWorkers("plans.test.konverge.dev");
const namespace = "default";

/** A client of an API over the same Redis, without access to the cluster. */
function openClient(): Client {
  const { fetch } = openApi(workers.queues);
  return createClient({ server: "http://localhost:7070", fetch });
}

type Handle = (context: ReconcileContext<Widget>) => Promise<unknown>;

/** Plans the object `blue` with a handler that does nothing in live attempts. */
async function planWith(handle: Handle, options: { timeout?: string } = {}): Promise<PlanRecord> {
  const controller = defineController({
    name: "widgets",
    for: workers.Widgets,
    owns: [ConfigMap],
    ...options,
    reconcile: async (context) => {
      if (context.plan) await handle(context);
    },
  } as Parameters<typeof defineController<Widget>>[0]);
  await workers.start([controller]);
  await workers.client.create(workers.Widgets, { metadata: { namespace, name: "blue" }, spec: {} });
  return await planBlue();
}

async function planBlue(): Promise<PlanRecord> {
  const client = openClient();
  const object = { cluster: "default", controller: "widgets", namespace, name: "blue" };
  const { plan, message } = await client.objects.plan(object, { timeoutMs: 60_000 });
  expect(message).toBeUndefined();
  return plan ?? expect.unreachable("no plan");
}

const names = async (): Promise<string[]> =>
  (await workers.client.list(ConfigMap, { namespace })).items.map(({ metadata }) => metadata.name);

test("a plan lists changes, events, external calls and the outcome, and stores nothing", async () => {
  let calls = 0;
  const live: string[] = [];
  const controller = defineController({
    name: "widgets",
    for: workers.Widgets,
    owns: [ConfigMap],
    reconcile: async ({ object, kube, plan, external, requeueAfter }) => {
      if (!plan) return void live.push(object.metadata.name);
      const { name } = object.metadata;
      const report = await kube.reconcileChildren(object, [
        child(ConfigMap, { name: `${name}-child`, data: { color: "blue" } }),
      ]);
      const [made] = report.children;
      expect(await kube.list(ConfigMap, { ownedBy: object })).toMatchObject([
        { metadata: { name: made?.object.metadata.name } },
      ]);
      expect(await external("charge", () => ++calls, { planned: 7 })).toBe(7);
      await kube.event(object, { type: "Normal", reason: "Made", message: "made a child" });
      await kube.mutateStatus(object, (draft) => {
        draft["status"] = { phase: "Ready" };
      });
      return requeueAfter("30s");
    },
  });
  await workers.start([controller]);
  const made = await workers.client.create(workers.Widgets, {
    metadata: { namespace, name: "blue" },
    spec: { size: 1 },
  });
  await until("the live attempt has ended", () => live.length > 0);
  const client = openClient();
  const object = { cluster: "default", controller: "widgets", namespace, name: "blue" };
  const state = async () => {
    const { attempts, ...rest } = await client.objects.get(object);
    return { ...rest, attempts: attempts.map(({ id }) => id) };
  };
  await until("the key is at rest", async () => (await state()).phase === "idle");
  const before = await state();
  const plan = await planBlue();
  expect(plan).toMatchObject({
    kind: "plan",
    key: `widgets/default/widgets.${workers.Widgets.group}/default/blue`,
    by: "test",
    uid: made.metadata.uid,
    versionBefore: made.metadata.resourceVersion,
    outcome: "requeueAfter",
    afterMs: 30_000,
    complete: true,
    summary: { created: 1, changed: 1, deleted: 0 },
    changes: [
      {
        action: "created",
        kind: "ConfigMap",
        name: "blue-child",
        writes: [{ verb: "apply", fieldManager: "konverge/widgets", changed: true }],
        patch: { data: { color: "blue" } },
      },
      { action: "changed", name: "blue", patch: { status: { phase: "Ready" } } },
    ],
    events: [{ reason: "Made", message: "made a child", kind: "Widget", name: "blue" }],
    externals: ["charge"],
  });
  expect(plan.hash).toMatch(/^[0-9a-f]{64}$/);
  expect((await planBlue()).hash).toBe(plan.hash);
  expect(calls).toBe(0);
  expect(await workers.client.get(workers.Widgets, { namespace, name: "blue" })).toEqual(made);
  expect(await names()).not.toContain("blue-child");
  // The live key has neither another attempt nor another state.
  expect(await state()).toEqual(before);
  expect((await client.objects.plans(object)).items.map(({ id }) => id)).toContain(plan.id);
  const writes = workers.calls().filter((call) => /^(create|update|patch|delete)/.test(call));
  const planned = writes.filter(
    (call) => call.includes("configmaps") || call.includes("/widgets/"),
  );
  expect(planned.length).toBeGreaterThan(0);
  expect(planned.filter((call) => !call.includes("dryRun=All"))).toEqual([]);
});

test("the handler of docs/plan.md is planned without its external call", async () => {
  const block = blockOf("docs/plan.md ts 1");
  const controllerOf = await functionOf<Controller>(block, [], "buckets");
  await workers.client.create(ConfigMap, { metadata: { namespace, name: "photos" } });
  onTestFinished(() => workers.client.delete(ConfigMap, { namespace, name: "photos" }));
  // Its live attempts fail, because createBucket is only declared.
  await workers.start([await controllerOf({})]);
  const object = { cluster: "default", controller: "bucket", namespace, name: "photos" };
  const { plan } = await openClient().objects.plan(object, { timeoutMs: 60_000 });
  expect(plan).toMatchObject({
    complete: true,
    externals: ["create bucket"],
    changes: [{ action: "changed", name: "photos", patch: { data: { url: "planned" } } }],
  });
});

test("raw requests and client-node's APIs are planned as well", async () => {
  const plan = await planWith(async ({ kube }) => {
    const metadata = { name: "by-node", namespace };
    await kube.api(CoreV1Api).createNamespacedConfigMap({ namespace, body: { metadata } });
    const path = `/api/v1/namespaces/${namespace}/configmaps`;
    const body = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "by-raw" } };
    await kube.raw({ method: "POST", path, body });
    await kube.raw({ method: "DELETE", path: `${path}/by-node` });
  });
  expect(plan).toMatchObject({ complete: true, summary: { created: 1, unchanged: 1 } });
  expect(await names()).not.toContain("by-raw");
});

test("calls that have no dry run are not made, and the plan names them", async () => {
  const plan = await planWith(async ({ kube }) => {
    await kube.create(ConfigMap, { metadata: { name: "first" } });
    const path = `/api/v1/namespaces/${namespace}/pods/web/exec?command=ls`;
    await kube.raw({ method: "POST", path });
  });
  expect(plan).toMatchObject({
    complete: false,
    error: { code: "not_plannable" },
    gaps: [{ about: "exec of pods default/web" }],
    summary: { created: 1 },
  });
  expect(await names()).not.toContain("first");
});

test("calls within a limit are not made", async () => {
  let calls = 0;
  let isCaught = false;
  const plan = await planWith(async ({ limit }) => {
    await limit("stripe", () => ++calls).catch((error: unknown) => {
      isCaught = true;
      return error;
    });
  });
  expect(plan).toMatchObject({
    complete: false,
    outcome: "done",
    gaps: [{ about: 'the call within limit "stripe"' }],
  });
  expect(isCaught).toBe(true);
  expect(calls).toBe(0);
});

test("a handler that never ends is ended by its timeout, and writes nothing afterwards", async () => {
  const ended = Promise.withResolvers<unknown>();
  const plan = await planWith(
    async ({ kube, signal }) => {
      await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
      await kube.create(ConfigMap, { metadata: { name: "late" } }).catch(ended.resolve);
      await new Promise(() => undefined);
    },
    { timeout: "300ms" },
  );
  expect(plan).toMatchObject({ complete: false, error: { code: "timed_out" } });
  await ended.promise;
  expect(await names()).not.toContain("late");
});

test("a plan of many objects is bounded, and counts the rest", async () => {
  const plan = await planWith(async ({ kube }) => {
    for (let index = 0; index < 300; index += 1) {
      await kube.create(ConfigMap, {
        metadata: { name: `many-${index}` },
        data: { index: `${index}` },
      });
    }
  });
  expect(plan).toMatchObject({ complete: true, summary: { created: 300 }, moreChanges: 100 });
  expect(plan.changes).toHaveLength(200);
  expect((await names()).filter((name) => name.startsWith("many-"))).toEqual([]);
});

test("P12: a plan has no values of Secrets, even if the handler copies them", async () => {
  const canary = "canary-93ab-plan";
  await workers.client.create(Secret, {
    metadata: { namespace, name: "source" },
    stringData: { password: canary },
  });
  onTestFinished(() => workers.client.delete(Secret, { namespace, name: "source" }));
  const plan = await planWith(async ({ kube, object }) => {
    const { data = {} } = await kube.get(Secret, "source");
    const password = Buffer.from(data["password"] ?? "", "base64").toString();
    await kube.create(Secret, { metadata: { name: "copy" }, stringData: { password } });
    await kube.create(ConfigMap, { metadata: { name: "leak" }, data: { password } });
    await kube.event(object, { type: "Normal", reason: "Read", message: password });
  });
  expect(plan).toMatchObject({ complete: true, summary: { created: 2 } });
  expect(JSON.stringify(plan)).not.toContain(canary);
  expect(JSON.stringify(plan)).not.toContain(Buffer.from(canary).toString("base64"));
});

test("a controller without a worker that runs plans is reported", async () => {
  const { prefix } = workers.queues;
  const reconcile = async () => undefined;
  const controller = defineController({ name: "off", for: workers.Widgets, reconcile });
  const config = defineConfig({ controllers: [controller], settings: { prefix, plans: "off" } });
  await workers.start([], { config });
  const object = { cluster: "default", controller: "off", namespace, name: "blue" };
  expect(await openClient().objects.plan(object)).toMatchObject({
    state: "unavailable",
    message: expect.stringContaining("KONVERGE_PLANS is off") as string,
  });
});

test("a plan of all objects groups equal changes, writes nothing, and resumes from its file", async () => {
  const count = 30;
  const controller = defineController({
    name: "widgets",
    for: workers.Widgets,
    reconcile: async ({ object, kube, plan }) => {
      const { size = 0 } = object.spec as { size?: number };
      if (!plan || size === 0) return;
      await kube.mutate(object, (draft) => {
        draft.metadata.labels = { x: "1" };
      });
      if (size === 2) await kube.delete(object);
    },
  });
  for (let index = 0; index < count; index += 1) {
    const size = index % 3;
    const metadata = { namespace, name: `fleet-${index}` };
    await workers.client.create(workers.Widgets, { metadata, spec: { size } });
  }
  await workers.start([controller]);
  const client = openClient();
  const hasAll = async () =>
    (await client.objects.list({ limit: 100 }).page()).items.length === count;
  await until("all keys are known", hasAll);
  const folder = await mkdtemp(join(tmpdir(), "konverge-fleet-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  const file = join(folder, "plans.jsonl");
  const planAll = async () => {
    let planned = 0;
    const query = { cluster: "default" };
    const fleet = await planFleet(client, query, {
      progress: openProgressFile(file, query),
      timeoutMs: 60_000,
      onPlanned: () => (planned += 1),
    });
    return { fleet, planned };
  };
  const first = await planAll();
  expect(first.planned).toBe(count);
  expect(first.fleet).toMatchObject({ planned: count, unchanged: 10, changes: 20, deletes: 10 });
  expect(first.fleet.groups.map(({ action, fields }) => [action, fields]).toSorted()).toEqual([
    ["changed", ["metadata.labels.x"]],
    ["deleted", []],
  ]);
  const again = await planAll();
  expect(again.planned).toBe(0);
  expect(again.fleet.groups).toEqual(first.fleet.groups);
  const writes = workers.calls().filter((call) => /^(patch|delete) .*\/fleet-/.test(call));
  expect(writes.length).toBeGreaterThan(0);
  expect(writes.filter((call) => !call.includes("dryRun=All"))).toEqual([]);
  // They do not displace the plans of users.
  const one = { cluster: "default", controller: "widgets", namespace, name: "fleet-1" };
  expect((await client.objects.plans(one)).items).toEqual([]);
});

test("a missing object is planned as gone", async () => {
  await workers.start([
    defineController({ name: "widgets", for: workers.Widgets, reconcile: async () => undefined }),
  ]);
  expect(await planBlue()).toMatchObject({ outcome: "gone", complete: true, changes: [] });
});
