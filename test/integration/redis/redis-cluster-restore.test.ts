import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { defineController } from "@konverge/engine";
import { createRestoreControl } from "@konverge/queue";
import { defineConfig, startWorker } from "@konverge/worker";
import { Cluster } from "ioredis";
import { expect, test } from "vitest";
import { progressKeys, restoreKey } from "../../../libs/queue/src/restore/restore-state.ts";
import { until } from "../../support/until.ts";
import { keepLog } from "../../../apps/cli/src/testing/kept-log.ts";
import { startEmbeddedServer } from "../kube/embedded-server.ts";
import { installWidgets } from "../kube/kube-servers.ts";
import { startRedisCluster } from "./redis-cluster-fixture.ts";

const PREFIX = "konverge";
const CLUSTER = "default";
const SHARDS = 6;
const SLOTS = 16_384;
const TOLERANCE_MS = 2_000;

test("one node of a Redis Cluster that is restored from an older copy holds the work of the cluster", async () => {
  await using cleanup = new AsyncDisposableStack();
  const redis = cleanup.use(await startRedisCluster());
  const { client, kubeconfig } = cleanup.use(await startEmbeddedServer());
  const Widgets = await installWidgets(client, "node.test.konverge.dev");
  const copy = mkdtempSync(join(tmpdir(), "konverge-node-"));
  cleanup.defer(() => rmSync(copy, { recursive: true, force: true }));
  const connection = new Cluster(redis.primaries.map(({ port }) => ({ port, host: "127.0.0.1" })));
  connection.on("error", () => undefined);
  cleanup.defer(() => connection.disconnect());
  const control = createRestoreControl(connection, PREFIX);
  const progress = async () => (await control.read(CLUSTER)).progressMs ?? 0;
  const advanced = async (byMs: number) => {
    const before = await progress();
    await until(
      "the progress advances",
      async () => (await progress().catch(() => 0)) > before + byMs,
    );
  };

  const seen: string[] = [];
  const worker = await startWorker({
    config: defineConfig({
      controllers: [
        defineController({
          name: "widgets",
          for: Widgets,
          reconcile: async ({ object }) => void seen.push(object.metadata.name),
        }),
      ],
      clusters: { [CLUSTER]: { shards: SHARDS } },
      settings: { restoreTolerance: `${TOLERANCE_MS}ms`, leaseDuration: "3s" },
    }),
    redis: redis.url,
    kubeconfig,
    log: keepLog([]),
  });
  cleanup.defer(() => worker.kill());
  await client.create(Widgets, { metadata: { namespace: "default", name: "one" } });
  await until("the widget is reconciled", () => seen.length > 0);

  // A node with a part of the queues, without the state of the cluster itself.
  const nodeOf = async (key: string) =>
    Math.floor((Number(await connection.cluster("KEYSLOT", key)) * redis.primaries.length) / SLOTS);
  const own = await nodeOf(restoreKey(PREFIX, CLUSTER));
  const nodes = await Promise.all(progressKeys(PREFIX, CLUSTER, SHARDS).map(nodeOf));
  const index = nodes.find((one) => one !== own);
  const node = redis.primaries[index ?? -1];
  if (index === undefined || node === undefined) throw new Error("all parts are on one node");
  await advanced(0);
  cpSync(node.dir, copy, { recursive: true });
  await advanced(3 * TOLERANCE_MS);
  await node.kill();
  rmSync(node.dir, { recursive: true });
  cpSync(copy, node.dir, { recursive: true });
  await redis.restart(index);
  const held = await until("the restore is held", async () => {
    const { held: kinds } = await control.read(CLUSTER).catch(() => ({ held: [] }));
    return kinds.length > 0 ? kinds : undefined;
  });
  expect(held).toEqual(["keys", "runs", "pauses", "guard"]);
  // An attempt on another node may have begun before the hold.
  await advanced(TOLERANCE_MS);
  const before = seen.length;
  await client.create(Widgets, { metadata: { namespace: "default", name: "two" } });
  await advanced(4 * TOLERANCE_MS);
  expect(seen.length).toBe(before);
  await control.accept(CLUSTER, [...held], "ann");
  await until("the new widget is reconciled", () => seen.includes("two"));
});
