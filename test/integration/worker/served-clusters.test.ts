import { defined } from "@konverge/core";
import { viewClusters } from "../../../libs/api/src/views/cluster-view.ts";
import { createApi, openQueueAccess } from "@konverge/api";
import { openGuardControl } from "@konverge/guard";
import { createMetrics } from "@konverge/telemetry";
import { createClusterRegistry } from "@konverge/queue";
import { defineController } from "@konverge/engine";
import { ConfigMap } from "@konverge/kube/kinds";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { defineConfig, kubeconfigDirectory, startWorker, type Config } from "@konverge/worker";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import type { ClusterList } from "@konverge/contracts";
import { keepLog } from "../../../apps/cli/src/testing/kept-log.ts";
import { until } from "../../support/until.ts";
import { useQueues } from "../queue/queue-harness.ts";
import { KubeconfigFolder, startFleetCluster, type FleetCluster } from "./fleet-harness.ts";

const queues = useQueues();
const namespace = "default";
let east: FleetCluster;
let west: FleetCluster;
beforeAll(async () => {
  [east, west] = await Promise.all([startFleetCluster(), startFleetCluster()]);
});
afterAll(async () => {
  await east[Symbol.asyncDispose]();
  await west[Symbol.asyncDispose]();
});

const seenIn: string[] = [];
const note = defineController({
  name: "note",
  for: ConfigMap,
  reconcile: async ({ object, key }) => {
    if (object.metadata.name === "seen") seenIn.push(key.cluster);
  },
});

async function start(clusters: Config["clusters"], cluster?: string) {
  const worker = await startWorker({
    config: defineConfig({
      controllers: [note],
      clusters,
      settings: { leaseDuration: "3s", prefix: queues.prefix },
    }),
    redis: queues.url,
    ...defined({ cluster }),
    log: keepLog([]),
  });
  onTestFinished(() => worker.kill());
  return worker;
}

/** Files, as a static list names paths. */
function files(): { readonly east: string; readonly west: string } {
  const folder = mkdtempSync(join(tmpdir(), "konverge-list-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const paths = { east: join(folder, "east"), west: join(folder, "west") };
  writeFileSync(paths.east, east.server.kubeconfig);
  writeFileSync(paths.west, west.server.kubeconfig);
  return paths;
}

const openList = () => {
  const onError = () => undefined;
  const access = openQueueAccess({ redis: queues.apiTarget, prefix: queues.prefix, onError });
  const guards = openGuardControl({ redis: queues.target, prefix: queues.prefix });
  onTestFinished(async () => {
    await access.close();
    await guards.close();
  });
  const api = createApi({
    access,
    guards,
    metrics: createMetrics({ version: "1" }),
    token: "admin",
    cluster: "default",
    onError,
  });
  const get = async (token: string): Promise<ClusterList["items"]> => {
    const headers = { authorization: `Bearer ${token}` };
    const response = await api.fetch(new Request("http://localhost/v1/clusters", { headers }));
    expect(response.status).toBe(200);
    return ((await response.json()) as ClusterList).items;
  };
  return { access, get };
};

test("a worker serves all listed clusters, and one that is selected", async () => {
  const paths = files();
  const clusters = { east: { kubeconfig: paths.east }, west: { kubeconfig: paths.west } };
  const { get } = openList();
  const worker = await start(clusters);
  for (const { client } of [east, west]) {
    await client.apply(ConfigMap, { metadata: { namespace, name: "seen" } });
  }
  await until("both are reconciled", () => seenIn.includes("east") && seenIn.includes("west"));
  expect(worker.clusters.map(({ name, state }) => [name, state])).toEqual([
    ["east", "engaged"],
    ["west", "engaged"],
  ]);
  const [first] = await until("the versions are reported", async () => {
    const items = await get("admin");
    return items.every(({ serverVersion }) => serverVersion !== undefined) && items;
  });
  expect(first).toMatchObject({
    name: "east",
    source: "configuration",
    state: "engaged",
    breaker: "closed",
    serverVersion: expect.stringMatching(/^v1\./) as string,
    workers: [{ workerId: worker.workerId, state: "engaged" }],
  });
  await worker.kill();
  expect(await get("admin")).toEqual([]);

  const picked = await start(clusters, "west");
  expect(picked.clusters.map(({ name }) => name)).toEqual(["west"]);
  await until("only west is reported", async () => {
    const items = await get("admin");
    return items.length === 1 && items[0]?.name === "west";
  });
});

test("a second name of a cluster is failing until the first one is removed", async () => {
  using folder = new KubeconfigFolder();
  folder.put("one", west.server.kubeconfig);
  const worker = await start(kubeconfigDirectory({ path: folder.path }));
  const { access, get } = openList();
  await until("one is engaged", () => worker.clusters[0]?.state === "engaged");
  folder.put("two", `${west.server.kubeconfig}# another text\n`);
  const failing = await until("two is failing", async () =>
    (await get("admin")).find(({ name, state }) => name === "two" && state === "failing"),
  );
  expect(failing.reason).toMatch(/^same cluster as "one": both have the UID /);
  expect(await queues.redis.exists(`${queues.prefix}:{two}/uid`)).toBe(0);

  // A scoped token sees its clusters, without reasons.
  const { token } = await access.tokens.create(
    {
      name: "scoped",
      role: "viewer",
      scope: { clusters: ["two"] },
    },
    "ann",
  );
  const [visible, ...others] = await get(token);
  expect(others).toEqual([]);
  expect(visible).toMatchObject({ name: "two", state: "failing" });
  expect(JSON.stringify(visible)).not.toContain("one");

  folder.remove("one");
  await until("two is engaged", async () => {
    const items = await get("admin");
    return items.length === 1 && items[0]?.name === "two" && items[0].state === "engaged";
  });
});

test("workers of one name share a cluster; another name waits for the last of them", async () => {
  const open = (workerId: string) => {
    const registry = createClusterRegistry({
      redis: queues.target,
      prefix: queues.prefix,
      workerId,
      onError: () => undefined,
    });
    onTestFinished(() => registry.close());
    return registry;
  };
  const claim = (cluster: string) => ({ cluster, uid: "u", onLost: () => undefined });
  const [first, second, third] = [open("w1"), open("w2"), open("w3")];
  const release = await first.claim(claim("a/b"));
  await second.claim(claim("a/b"));
  await release();
  await expect(third.claim(claim("a"))).rejects.toMatchObject({ code: "duplicate_cluster" });
  await second.close();
  await third.claim(claim("a"));
  await expect(first.claim(claim("a/b"))).rejects.toThrow('same cluster as "a"');
});

test("a worker that lost a cluster to another name claims it again when that name is gone", async () => {
  const open = (workerId: string) => {
    const registry = createClusterRegistry({
      redis: queues.target,
      prefix: queues.prefix,
      workerId,
      onError: () => undefined,
    });
    onTestFinished(() => registry.close());
    return registry;
  };
  const claims = () => queues.redis.keys(`${queues.prefix}:{/clusters}/uid/*`);
  const lost: string[] = [];
  const claim = (cluster: string) => ({
    cluster,
    uid: "u",
    onLost: ({ message }: Error) => lost.push(`${cluster}: ${message.split(":")[0] ?? ""}`),
  });
  const [first, second, third] = [open("w1"), open("w2"), open("w3")];
  await first.claim(claim("a"));
  for (const round of [1, 2]) {
    // Its claim expires while Redis is unavailable.
    await queues.redis.del(...(await claims()));
    const release = await second.claim(claim("b"));
    first.changed();
    await until("the loss is reported", () => lost.length === round);
    await release();
    first.changed();
    await until("it is claimed again", async () => (await claims()).length === 1);
    await expect(third.claim(claim("c"))).rejects.toThrow('same cluster as "a"');
  }
  expect(lost).toEqual(Array<string>(2).fill('a: same cluster as "b"'));
});

test("combines the reports of workers into the most severe state", () => {
  const since = "2026-01-01T00:00:00.000Z";
  const cluster = { name: "a", source: "configuration", since };
  const reports = [
    { workerId: "w1", clusters: [{ ...cluster, state: "engaged" as const, serverVersion: "v1" }] },
    { workerId: "w2", clusters: [{ ...cluster, state: "failing" as const, reason: "no route" }] },
  ];
  expect(viewClusters(reports, { withReasons: true })).toEqual([
    {
      ...cluster,
      state: "failing",
      reason: "no route",
      serverVersion: "v1",
      workers: [
        { workerId: "w2", state: "failing", since, reason: "no route" },
        { workerId: "w1", state: "engaged", since },
      ],
    },
  ]);
});
