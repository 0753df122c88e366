import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import type { ResourceType } from "@konverge/core";
import { defineController, startEngine, type Log } from "@konverge/engine";
import type { KubeClient } from "@konverge/kube";
import { createObjectLanes } from "@konverge/lanes";
import { createWorkQueue } from "@konverge/queue";
import { createMetrics } from "@konverge/telemetry";
import { startRedis, type RunningRedis } from "@konverge/apiserver";
import { installWidgets, removeWidgets, testServers, type Widget } from "../kube/kube-servers.ts";
import { hold } from "../queue/queue-harness.ts";
import { until } from "../../support/until.ts";

/** A Redis that lost acknowledged data: all objects of the API server are requested again. */

const GROUP = "lost.test.konverge.dev";
const namespace = "default";
const CLUSTER = "default";
const [embedded] = testServers();
let client: KubeClient;
let closeServer: () => Promise<void>;
let Widgets: ResourceType<Widget>;
let dir: string;
let redis: RunningRedis;
let ends: (() => Promise<unknown> | void)[] = [];

beforeAll(async () => {
  const server = await embedded?.open();
  if (server === undefined) throw new Error("no API server");
  ({ client } = server);
  closeServer = () => server.close();
  Widgets = await installWidgets(client, GROUP);
});
beforeEach(async () => {
  dir = mkdtempSync(join(tmpdir(), "konverge-lost-"));
  redis = await startRedis({ dir: join(dir, "a") });
});
afterEach(async () => {
  for (const end of ends.toReversed()) await end();
  ends = [];
  const { items } = await client.list(Widgets, { namespace });
  await Promise.all(
    items.map(({ metadata: { name } }) => client.delete(Widgets, { namespace, name })),
  );
  await redis.stop();
  rmSync(dir, { recursive: true, force: true });
});
afterAll(async () => {
  await removeWidgets(client, GROUP);
  await closeServer();
});

const make = (name: string) =>
  client.create(Widgets, { metadata: { namespace, name }, spec: { size: 1 } });

async function start(options: {
  readonly shards: number;
  readonly concurrency?: number;
  readonly reconcile: (name: string, size: unknown) => Promise<void> | void;
}): Promise<{ readonly warnings: string[]; readonly acknowledged: string[] }> {
  const warnings: string[] = [];
  const acknowledged: string[] = [];
  const log: Log = {
    debug: () => undefined,
    info: () => undefined,
    warn: (_fields: object, message?: string) => warnings.push(message ?? ""),
    error: () => undefined,
    child: () => log,
  };
  const common = { redis: { url: redis.url }, cluster: CLUSTER };
  const controller = defineController<Widget>({
    name: `widgets-${crypto.randomUUID().slice(0, 8)}`,
    for: Widgets,
    concurrency: options.concurrency ?? 16,
    reconcile: async ({ object }) => {
      await options.reconcile(object.metadata.name, object.spec?.["size"]);
    },
  });
  const lanes = createObjectLanes({ ...common, processId: "w", onError: () => undefined });
  ends.push(() => lanes.close());
  const engine = await startEngine({
    controllers: [controller],
    client,
    lanes,
    queueFor: ({ name }) =>
      createWorkQueue({
        ...common,
        controller: name,
        leaseMs: 2_000,
        shards: options.shards,
        observe: () => ({
          ended: (result) => {
            if (!(result instanceof Error)) acknowledged.push(result.key);
          },
        }),
      }),
    workerId: "w",
    log,
    metrics: createMetrics({ version: "test" }),
    installation: controller.name,
    leaseNamespace: namespace,
    election: { leaseDurationMs: 3_000, renewDeadlineMs: 2_000, retryPeriodMs: 400 },
  });
  ends.push(() => engine.stop({ graceMs: 500 }));
  return { warnings, acknowledged };
}

test.each([1, 3])("FLUSHALL: every object is reconciled again (%d shards)", async (shards) => {
  const names = Array.from({ length: 20 }, (_, n) => `w-${n}`);
  await Promise.all(names.map(make));
  const seen = new Set<string>();
  const { warnings } = await start({ shards, reconcile: (name) => void seen.add(name) });
  await until("the first round", () => seen.size === names.length);

  const admin = new Redis(redis.url);
  await admin.flushall();
  admin.disconnect();
  seen.clear();
  await until("every object again", () => seen.size === names.length);
  expect(warnings).toContain("possible Redis data loss, full resync started");
  // A healthy Redis causes no further resync.
  expect(warnings.filter((message) => /data loss/.test(message))).toHaveLength(1);
});

test("after a failover to an outdated replica, an acknowledged but lost change is reconciled", async () => {
  const replica = await startRedis({
    dir: join(dir, "b"),
    extraArgs: ["--replicaof", "127.0.0.1", String(redis.port)],
  });
  ends.push(() => replica.stop());
  const held = hold();
  const sizes = new Map<string, unknown>();
  const { warnings, acknowledged } = await start({
    shards: 1,
    concurrency: 1,
    reconcile: async (name, size) => {
      sizes.set(name, size);
      if (name === "blocker" && size === 2) await held.wait();
    },
  });
  await make("blocker");
  await make("changed");
  await until("both", () => sizes.get("blocker") === 1 && sizes.get("changed") === 1);
  const resize = (name: string) =>
    client.patch(
      Widgets,
      { namespace, name },
      { type: "merge", body: { spec: { size: 2 } } },
      { unguarded: true },
    );
  await resize("blocker");
  await until("the only slot is taken", () => sizes.get("blocker") === 2);

  const copy = new Redis(replica.url);
  const primary = new Redis(redis.url);
  ends.push(
    () => copy.disconnect(),
    () => primary.disconnect(),
  );
  copy.on("error", () => undefined);
  primary.on("error", () => undefined);
  await primary.set("marker", "");
  await until(
    "the replica is up to date",
    async () =>
      /master_link_status:up/.test(await copy.info("replication")) &&
      (await primary.wait(1, 1_000)) === 1,
  );
  await copy.replicaof("NO", "ONE");
  // Only the primary has acknowledged it.
  acknowledged.length = 0;
  await resize("changed");
  await until("the change is requested", () =>
    acknowledged.some((key) => key.endsWith("/changed")),
  );
  await redis.kill();
  await replica.stop();
  // The same address, another process, older data.
  redis = await startRedis({ dir: join(dir, "b"), port: redis.port });
  held.release();
  await until("the lost change", () => sizes.get("changed") === 2);
  expect(warnings).toContain("possible Redis data loss, full resync started");
});
