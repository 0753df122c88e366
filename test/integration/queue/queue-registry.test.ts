import { afterEach, expect, test, vi } from "vitest";
import { FORMATS } from "../../../libs/queue/src/fleet/format.ts";
import { keepAlive, listLiveWorkers } from "../../../libs/queue/src/fleet/live-workers.ts";
import { startRedis } from "@konverge/infra-redis";
import {
  bindCluster,
  createControllerRegistry,
  openRawQueue,
  type AnnouncedController,
  type ControllerRegistry,
} from "@konverge/queue";
import { checkRedis } from "@konverge/redis";
import { CLUSTER, CONTROLLER, keyOf, useQueues } from "./queue-harness.ts";
import { until } from "../../support/until.ts";

const harness = useQueues();
const open: ControllerRegistry[] = [];
const registry = () => {
  const { prefix, target } = harness;
  const created = createControllerRegistry({ redis: target, cluster: CLUSTER, prefix });
  open.push(created);
  return created;
};
afterEach(async () => {
  await Promise.all(open.splice(0).map((one) => one.close()));
});

const controller = (name: string): AnnouncedController => ({
  name,
  cluster: CLUSTER,
  group: "demo.konverge.dev",
  version: "v1",
  kind: "NodePool",
  resource: "nodepools",
  scope: "Namespaced",
});

test("announcements of a worker are visible to other processes", async () => {
  await registry().announce([controller("b"), controller("a")]);
  const other = registry();
  expect(await other.list()).toEqual([controller("a"), controller("b")]);
  expect(await other.get("a")).toEqual(controller("a"));
  await expect(other.get("c")).rejects.toMatchObject({
    code: "unknown_controller",
    message: 'cluster "default" has no controller "c"; known: a, b',
  });
});

test("a live worker restores its announcements in a Redis that lost them", async () => {
  const worker = registry();
  await worker.announce([controller("a")]);
  worker.heartbeat({
    workerId: "w",
    controllers: ["a"],
    definitions: {},
    role: "work" as const,
    version: "1",
    startedAt: new Date().toISOString(),
    host: "h",
  });
  await until("the worker is listed", async () => (await worker.listWorkers()).length === 1);
  const keys = await harness.redis.keys(`${harness.prefix}*`);
  await harness.redis.del(...keys);
  const other = registry();
  await until("the controller is known again", async () => (await other.list()).length === 1);
  // A separate command, because the list of clusters is in another slot of a Redis Cluster.
  await until("and the cluster", async () => (await other.listClusters()).length === 1);
  expect(await other.listClusters()).toEqual([CLUSTER]);
});

test("a worker whose clock differs from that of Redis is listed with the difference and its start", async () => {
  const key = `${harness.prefix}:skewed-workers`;
  const worker = {
    workerId: "w",
    controllers: [],
    definitions: {},
    role: "work" as const,
    version: "1",
    startedAt: new Date().toISOString(),
    host: "h",
  };
  const HOUR_MS = 3_600_000;
  const real = Date.now.bind(Date);
  const skewAt = async (aheadMs: number) => {
    const clock = vi.spyOn(Date, "now").mockImplementation(() => real() + aheadMs);
    try {
      await keepAlive(harness.redis, key, worker);
    } finally {
      clock.mockRestore();
    }
    return (await listLiveWorkers(harness.redis, key))[0]?.clockSkew;
  };
  expect(await skewAt(0)).toBeUndefined();
  const behind = await skewAt(-HOUR_MS);
  expect(Math.round((behind?.aheadMs ?? 0) / 60_000)).toBe(-60);
  expect((await skewAt(-2 * HOUR_MS))?.sinceMs).toBe(behind?.sinceMs);
  expect(await skewAt(0)).toBeUndefined();
});

test("rejects a controller of another cluster", async () => {
  await expect(
    registry().announce([{ ...controller("a"), cluster: "other" }]),
  ).rejects.toMatchObject({ code: "invalid_config" });
});

test("lists each cluster with controllers once", async () => {
  expect(await registry().listClusters()).toEqual([]);
  await registry().announce([controller("a")]);
  await registry().announce([controller("b")]);
  const { prefix, target } = harness;
  const other = createControllerRegistry({ redis: target, cluster: "a/b", prefix });
  open.push(other);
  await other.announce([{ ...controller("a"), cluster: "a/b" }]);
  expect(await registry().listClusters()).toEqual(["a/b", CLUSTER]);
});

test("lists live workers until they stop or become unresponsive", async () => {
  const worker = {
    workerId: "w1",
    controllers: ["a"],
    definitions: {},
    role: "work" as const,
    version: "1.0.0",
    startedAt: "2026-01-01T00:00:00.000Z",
    host: "h",
  };
  const mine = registry();
  const stop = mine.heartbeat(worker);
  await until("the first heartbeat", async () => (await mine.listWorkers()).length === 1);
  expect(await mine.listWorkers()).toEqual([{ ...worker, format: FORMATS.newest }]);
  const silent = JSON.stringify({ ...worker, workerId: "w0", seenAtMs: Date.now() - 60_000 });
  await harness.redis.hset(`${harness.prefix}:{${CLUSTER}}/workers`, "w0", silent);
  expect(await mine.listWorkers()).toEqual([{ ...worker, format: FORMATS.newest }]);
  await stop();
  expect(await mine.listWorkers()).toEqual([]);
});

test("a cluster's name belongs to the first uid", async () => {
  const { prefix, target } = harness;
  const bind = (uid: string, own = prefix) =>
    bindCluster({ redis: target, prefix: own, cluster: CLUSTER, uid });
  await Promise.all([bind("u1"), bind("u1")]);
  await bind("u1");
  await expect(bind("u2")).rejects.toMatchObject({ code: "cluster_mismatch" });
  await bind("u2", `${prefix}:b`);
});

test("a raw queue shows the jobs and does not change stored settings", async () => {
  const queue = harness.open();
  await queue.request(keyOf("a"), { kind: "http" });
  const meta = `${harness.prefix}:{${CLUSTER}}:${CONTROLLER}:meta`;
  // BullMQ stores them in the background.
  await until("the settings", async () => (await harness.redis.hlen(meta)) > 1);
  const before = await harness.redis.hgetall(meta);
  const { prefix, target } = harness;
  const raw = openRawQueue({ redis: target, prefix, cluster: CLUSTER, controller: CONTROLLER });
  const [job] = await raw.queue.getJobs(["prioritized"]);
  expect(job?.data).toEqual({ key: "node-pool/default/nodepools.demo.konverge.dev/demo/a" });
  await raw.close();
  expect(await harness.redis.hgetall(meta)).toEqual(before);
});

test("rejects a Redis that may evict keys, and warns without AOF", async () => {
  await using evicting = await startRedis({
    appendonly: false,
    extraArgs: ["--maxmemory-policy", "allkeys-lru"],
  });
  await expect(checkRedis({ url: evicting.url })).rejects.toMatchObject({
    code: "redis_unsupported",
    message: expect.stringContaining("set maxmemory-policy noeviction") as string,
  });
  await using forgetful = await startRedis({ appendonly: false });
  expect((await checkRedis({ url: forgetful.url })).warnings).toEqual([
    expect.stringContaining("appendonly yes"),
  ]);
  await using good = await startRedis();
  expect((await checkRedis({ url: good.url })).warnings).toEqual([]);
  await good.stop();
  await expect(checkRedis({ url: good.url })).rejects.toMatchObject({ code: "redis_unavailable" });
});
