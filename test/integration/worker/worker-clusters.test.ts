import { readFile } from "node:fs/promises";
import { CoreV1Api } from "@kubernetes/client-node";
import { readSettings } from "@konverge/contracts";
import { openGuardControl } from "@konverge/guard";
import { bindCluster, createClusterRegistry, createControllerRegistry } from "@konverge/queue";
import { createMetrics } from "@konverge/telemetry";
import { isNotFound } from "@konverge/kube";
import { openKube, type OpenKubeOptions } from "@konverge/worker";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { ConfigMap } from "@konverge/kube/kinds";
import { connectCluster, readClusterUid } from "../../../libs/worker/src/connect-cluster.ts";
import { openClusters } from "../../../libs/worker/src/open-clusters.ts";
import { startEmbeddedServer, type EmbeddedServer } from "../kube/embedded-server.ts";
import { useQueues } from "../queue/queue-harness.ts";
import { type LogLine, keepLog } from "../../../apps/cli/src/testing/kept-log.ts";
import { until } from "../../support/until.ts";

const SYSTEM = { namespace: "kube-system", name: "where" };

let east: EmbeddedServer;
let west: EmbeddedServer;
let cleanup = new AsyncDisposableStack();

beforeAll(async () => {
  [east, west] = await Promise.all([startEmbeddedServer(), startEmbeddedServer()]);
  for (const [name, { client }] of Object.entries({ east, west })) {
    await client.create(ConfigMap, {
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: { ...SYSTEM, labels: { cluster: name } },
    });
  }
});
// Before the hook of the queues, which deletes the names.
const queues = useQueues();
afterEach(async () => {
  await cleanup.disposeAsync();
  cleanup = new AsyncDisposableStack();
});
afterAll(async () => {
  await east?.[Symbol.asyncDispose]();
  await west?.[Symbol.asyncDispose]();
});

/** The clusters of a worker with the home `east`. */
async function openEast() {
  const lines: LogLine[] = [];
  const metrics = createMetrics({ version: "1" });
  const connector = {
    settings: readSettings({
      file: { redisUrl: queues.url, prefix: queues.prefix, kubeconfig: east.kubeconfig },
      env: {},
    }),
    version: "1",
    workerId: "worker-1",
    log: keepLog(lines),
    metrics,
    env: {},
  };
  const clusters = {
    east: {},
    west: { kubeconfig: west.kubeconfig },
    twin: { kubeconfig: east.kubeconfig },
    lost: {},
  };
  const target = { name: "east", cluster: clusters.east };
  const unsaid = { kubeconfigText: undefined, context: undefined, namespaces: undefined };
  const home = await connectCluster(connector, { ...target, ...unsaid });
  cleanup.defer(() => home.close());
  const { client } = home;
  const registry = createClusterRegistry({
    redis: queues.target,
    prefix: queues.prefix,
    workerId: "worker-1",
    onError: (error) => lines.push({ level: "error", message: error.message, fields: {} }),
  });
  cleanup.defer(() => registry.close());
  const uid = await readClusterUid(client, "kube-system");
  await registry.claim({ cluster: "east", uid, onLost: () => undefined });
  const access = openClusters({
    home: { name: "east", client },
    clusters,
    kubeconfigText: undefined,
    connector,
    registry,
  });
  cleanup.defer(() => access.close());
  const permits = async () =>
    Object.fromEntries(
      [
        ...(await metrics.text()).matchAll(
          /^konverge_guard_admitted_calls_total\{cluster="(\w+)"[^}]*\} (\d+)/gm,
        ),
      ].map(([, cluster, count]) => [cluster, Number(count)]),
    );
  return { access, lines, permits };
}
const whereIs = async (client: EmbeddedServer["client"]) =>
  (await client.get(ConfigMap, SYSTEM)).metadata.labels?.["cluster"];

test("connects each cluster with its own guard on first use", async () => {
  const { access, lines, permits } = await openEast();
  expect(await permits()).toEqual({ east: 1 });
  expect(await whereIs(await access.client("east"))).toBe("east");
  // Concurrent uses share one connection.
  const [first, second] = await Promise.all([access.client("west"), access.client("west")]);
  expect(second).toBe(first);
  expect(await whereIs(first)).toBe("west");
  // One call reads the uid, one is that of the caller.
  expect(await permits()).toEqual({ east: 2, west: 2 });
  expect(lines.map(({ message, fields }) => [message, fields["cluster"]])).toEqual([
    ["cluster connected", "west"],
  ]);

  const { prefix, target } = queues;
  const registry = createControllerRegistry({ redis: target, prefix, cluster: "east" });
  cleanup.defer(() => registry.close());
  expect(await registry.listClusters(), "its guard can be steered by anyone").toEqual(["west"]);

  await access.close();
  expect(await permits()).toEqual({ east: 2 });
  await expect(access.client("west")).rejects.toMatchObject({ code: "cancelled" });
});

test("an isolated cluster does not delay the other", async () => {
  const { access } = await openEast();
  const client = await access.client("west");
  await using control = openGuardControl({ redis: queues.target, prefix: queues.prefix });
  await control.isolate("west", { by: "ann", reason: "maintenance" });
  await until("west is isolated", async () =>
    whereIs(client).then(
      () => undefined,
      (error: unknown) => (error as { readonly code?: string }).code === "deferred" || undefined,
    ),
  );
  expect(await whereIs(await access.client("east"))).toBe("east");
});

test("rejects an unknown cluster and one without an address, with a reason", async () => {
  const { access } = await openEast();
  await expect(access.client("north")).rejects.toMatchObject({
    code: "invalid_request",
    message: 'cluster "north" is not in the clusters of the configuration: east, west, twin, lost',
  });
  await expect(access.client("toString")).rejects.toMatchObject({ code: "invalid_request" });
  await expect(access.client("lost")).rejects.toMatchObject({
    code: "invalid_config",
    message: expect.stringMatching(/^clusters\.lost: .*neither kubeconfig nor context/),
  });
});

test("does not write to a cluster bound to another uid, and retries when the binding is correct", async () => {
  const { access, permits } = await openEast();
  const { prefix, redis, target } = queues;
  await bindCluster({ redis: target, prefix, cluster: "west", uid: "of another" });
  await expect(access.client("west")).rejects.toMatchObject({ code: "cluster_mismatch" });
  expect(await permits(), "its guard is closed").toEqual({ east: 1 });
  const claims = await redis.keys(`${prefix}:{/clusters}/uid/*`);
  expect(claims, "workers with its own name can serve it").toHaveLength(1);
  await redis.del(`${prefix}:{west}/uid`);
  expect(await whereIs(await access.client("west"))).toBe("west");
});

test("rejects a second name of one API server, before the name is bound", async () => {
  const { access } = await openEast();
  await expect(access.client("twin")).rejects.toMatchObject({
    code: "duplicate_cluster",
    message: expect.stringMatching(/^same cluster as "east": both have the UID /),
  });
  expect(await queues.redis.keys(`${queues.prefix}:{twin}/uid`)).toEqual([]);
});

const openReport = async (options: Partial<OpenKubeOptions> = {}) => {
  const { url: redis, prefix } = queues;
  const kubeconfig = east.kubeconfig;
  const kube = await openKube({ name: "report", kubeconfig, redis, prefix, ...options });
  cleanup.defer(() => kube.close());
  return kube;
};

test("a program can use the calls of a handler, and its writes have its name", async () => {
  const kube = await openReport();
  await kube.apply(ConfigMap, { metadata: { name: "report" }, data: { total: "1" } });
  const core = kube.api(CoreV1Api);
  const target = { namespace: "default", name: "report" };
  const read = await core.readNamespacedConfigMap(target);
  expect(read.data).toEqual({ total: "1" });
  expect(read.metadata?.managedFields?.map(({ manager }) => manager)).toEqual(["report"]);
  await kube.event(
    { type: ConfigMap, name: "report" },
    { type: "Normal", reason: "R", message: "" },
  );
  const events = await core.listNamespacedEvent({ namespace: "default" });
  expect(events.items.map(({ reportingComponent }) => reportingComponent)).toEqual(["report"]);
  await kube.delete({ type: ConfigMap, name: "report" });
  await expect(core.readNamespacedConfigMap(target)).rejects.toSatisfy(isNotFound);
  await kube.close();
  await expect(kube.get(ConfigMap, "report")).rejects.toThrow("the Kubernetes client is closed");
});

test("a program shares the breaker and the limits of the workers, and changes none", async () => {
  const control = openGuardControl({ redis: queues.target, prefix: queues.prefix });
  cleanup.defer(() => control.close());
  const limits = async () => {
    const { rate, breaker } = (await control.read("default")) ?? {};
    return { ...rate?.limits, failures: breaker?.limits.failures, setBy: rate?.setBy };
  };
  // The first process stores its own.
  await (await openReport({ rate: 40, breaker: { failures: 3 } })).close();
  const before = await limits();
  expect(before).toMatchObject({ ratePerSecond: 40, failures: 3 });
  const kube = await openReport({ rate: 400 });
  expect(await limits()).toEqual(before);
  await control.isolate("default", { by: "ada", reason: "test" });
  await until("calls are deferred", async () => {
    try {
      await kube.find(ConfigMap, "report");
      return false;
    } catch (error) {
      expect(error).toMatchObject({ code: "deferred" });
      return true;
    }
  });
});

test("a program neither needs nor sets the number of shards", async () => {
  const { prefix, target } = queues;
  const bind = async (shards: number) => {
    const uid = await readClusterUid(east.client, "kube-system");
    await bindCluster({ redis: target, prefix, cluster: "default", uid, shards });
  };
  await openReport();
  await bind(4);
  await openReport();
  await expect(openReport({ shards: 2 })).rejects.toMatchObject({ code: "shards_mismatch" });
  await expect(bind(2)).rejects.toMatchObject({ code: "shards_mismatch" });
});

test("a program of another cluster does not join the guard", async () => {
  await openReport();
  await expect(openReport({ kubeconfig: west.kubeconfig })).rejects.toMatchObject({
    code: "cluster_mismatch",
  });
  // Without Redis, the rate is that of the process.
  const text = await readFile(west.kubeconfig, "utf8");
  const kube = await openKube({ name: "report", kubeconfig: { text }, namespace: "kube-system" });
  cleanup.defer(() => kube.close());
  expect((await kube.get(ConfigMap, "where")).metadata.labels).toEqual({ cluster: "west" });
});

test("all invalid options of a program are reported", async () => {
  for (const kubeconfig of [5, null, {}, { text: 5 }]) {
    const given = { name: "a b", rate: -1, breaker: { failures: 3 }, kubeconfig, speed: 1 };
    await expect(openKube(given as unknown as OpenKubeOptions)).rejects.toMatchObject({
      code: "invalid_config",
      issues: ["/speed", "/rate", "/name", "/kubeconfig", "/breaker"].map(
        (pointer) => expect.objectContaining({ pointer }) as object,
      ),
    });
  }
});
