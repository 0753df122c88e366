import { createClient, type Client } from "@konverge/client";
import { defineController, type Controller, type ReconcileContext } from "@konverge/engine";
import { ConfigMap } from "@konverge/kube/kinds";
import { expect, onTestFinished, test } from "vitest";
import type { Widget } from "../kube/kube-servers.ts";
import { until } from "../../support/until.ts";
import { openApi } from "./open-api.ts";
import { useWorkers } from "./worker-harness.ts";

const workers = useWorkers("drift.test.konverge.dev");
const namespace = "default";
const blue = { cluster: "default", controller: "widgets", namespace, name: "blue" };

function openClient(): Client {
  const { fetch } = openApi(workers.queues);
  return createClient({ server: "http://localhost:7070", fetch });
}

type Handle = (context: ReconcileContext<Widget>) => Promise<unknown>;

const controllerOf = (mode: "reconcile" | "observe", reconcile: Handle): Controller =>
  defineController({
    name: "widgets",
    for: workers.Widgets,
    owns: [ConfigMap],
    mode,
    reconcile,
  } as Parameters<typeof defineController<Widget>>[0]);

/** Keeps a ConfigMap of the widget, and polls. */
const keepsMap: Handle = async ({ object, kube, requeueAfter }) => {
  await kube.apply(ConfigMap, {
    name: `${object.metadata.name}-map`,
    ownedBy: object,
    data: { size: "1", mode: "fast" },
  });
  return requeueAfter("1s");
};

/** The writes of workers since a call, without those of their election. */
const writesSince = (start: number) =>
  workers
    .calls()
    .slice(start)
    .filter((call) => !/^(get|list|watch) /.test(call) && !call.includes("/leases"));

const driftOf = async (client: Client) => (await client.drift.list()).items;

test("reports what a manager has moved since when, and forgets it when it is put back", async () => {
  await workers.client.create(workers.Widgets, { metadata: { namespace, name: "blue" }, spec: {} });
  const map = { namespace, name: "blue-map" };
  onTestFinished(() => workers.client.delete(ConfigMap, map).catch(() => undefined));
  const first = await workers.start([controllerOf("reconcile", keepsMap)]);
  const client = openClient();
  await until("the map exists", async () => {
    const { items } = await workers.client.list(ConfigMap, { namespace });
    return items.some(({ metadata }) => metadata.name === map.name);
  });
  await first.stop();
  const start = workers.calls().length;

  await workers.start([controllerOf("observe", keepsMap)]);
  await until("the object was planned", async () => {
    const { attempts } = await client.objects.get(blue);
    return attempts[0]?.kind === "plan" && attempts[0].outcome === "done";
  });
  expect(await client.drift.list()).toMatchObject({
    controllers: ["widgets"],
    objects: 0,
    groups: [],
    items: [],
  });
  const before = Date.now() - 1_000;
  await workers.client.patch(
    ConfigMap,
    map,
    { type: "merge", body: { data: { size: "9" } } },
    { unguarded: true },
  );
  await until("the drift is reported", async () => (await driftOf(client)).length === 1);
  const [item] = await driftOf(client);
  expect(item).toMatchObject({
    name: "blue",
    controller: "widgets",
    summary: { changed: 1 },
    changes: [
      {
        kind: "ConfigMap",
        name: "blue-map",
        action: "changed",
        fields: ["data.size"],
        moved: [{ manager: "konverge-test", path: "data.size" }],
      },
    ],
  });
  expect(Date.parse(item?.changes[0]?.moved[0]?.at ?? "")).toBeGreaterThanOrEqual(before - 1_000);
  expect((await client.drift.list()).groups).toMatchObject([
    {
      kind: "ConfigMap",
      action: "changed",
      fields: ["data.size"],
      managers: ["konverge-test"],
      count: 1,
    },
  ]);
  expect((await client.drift.get(blue)).plan).toMatchObject({
    kind: "plan",
    changes: [{ patch: { data: { size: "1" } } }],
  });
  expect((await workers.client.get(ConfigMap, map)).data).toMatchObject({ size: "9" });

  await workers.client.delete(ConfigMap, map);
  await until("the missing map is reported", async () =>
    (await driftOf(client)).some(({ changes }) => changes[0]?.action === "created"),
  );
  expect((await driftOf(client))[0]?.since).toBe(item?.since);
  await workers.client.delete(workers.Widgets, { namespace, name: "blue" });
  await until("the drift is forgotten", async () => (await driftOf(client)).length === 0);
  const writes = writesSince(start);
  expect(writes.length).toBeGreaterThan(0);
  expect(writes.filter((call) => !call.includes("dryRun=All"))).toEqual([]);
});

test("an object that does not change is planned once, although its handler polls", async () => {
  await workers.client.create(workers.Widgets, { metadata: { namespace, name: "blue" }, spec: {} });
  let runs = 0;
  await workers.start([
    controllerOf("observe", async (context) => {
      runs += 1;
      return await keepsMap(context);
    }),
  ]);
  const client = openClient();
  await until("the drift is reported", async () => (await driftOf(client)).length === 1);
  const { attempts } = await client.objects.get(blue);
  expect(attempts[0]).toMatchObject({ kind: "plan", outcome: "done", writes: [] });
  expect(attempts[0]?.afterMs).toBeUndefined();
  expect((await client.objects.get(blue)).nextAt).toBeUndefined();
  expect(runs).toBe(attempts.length);
});

test("a failed plan keeps the last report, and a controller that reconciles again has none", async () => {
  await workers.client.create(workers.Widgets, { metadata: { namespace, name: "blue" }, spec: {} });
  onTestFinished(() =>
    workers.client.delete(ConfigMap, { namespace, name: "blue-map" }).catch(() => undefined),
  );
  let fails = false;
  const first = await workers.start([
    controllerOf("observe", async (context) => {
      if (fails) throw new Error("the quota is unknown");
      return await keepsMap(context);
    }),
  ]);
  const client = openClient();
  await until("the drift is reported", async () => (await driftOf(client)).length === 1);
  fails = true;
  await client.objects.reconcile(blue);
  await until("the plan has failed", async () => {
    const [latest] = (await client.objects.get(blue)).attempts;
    return latest?.outcome === "retry" && latest.kind === "plan";
  });
  expect(await driftOf(client)).toHaveLength(1);
  await first.stop();
  await workers.start([controllerOf("reconcile", keepsMap)]);
  await until("the map exists", async () => {
    const { items } = await workers.client.list(ConfigMap, { namespace });
    return items.some(({ metadata }) => metadata.name === "blue-map");
  });
  expect(await client.drift.list()).toMatchObject({ controllers: [], objects: 0 });
  expect(await workers.queues.redis.keys(`${workers.queues.prefix}*drift/of*`)).toEqual([]);
});
