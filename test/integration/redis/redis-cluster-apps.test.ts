import { Redis } from "ioredis";
import { expect, test } from "vitest";
import { startApi } from "@konverge/api";
import { readSettings } from "@konverge/contracts";
import { isKonvergeError } from "@konverge/core";
import { defineConfig, startWorkerProcess } from "@konverge/worker";
import { defineController } from "@konverge/engine";
import { startEmbeddedServer } from "../kube/embedded-server.ts";
import { installWidgets } from "../kube/kube-servers.ts";
import { startRedisCluster } from "./redis-cluster-fixture.ts";
import { until } from "../../support/until.ts";

const namespace = "default";
const OBJECTS = 30;

test("worker and HTTP API work on a Redis Cluster with shards, and a node restart loses nothing", async () => {
  await using cleanup = new AsyncDisposableStack();
  const redis = cleanup.use(await startRedisCluster());
  const { client, kubeconfig } = cleanup.use(await startEmbeddedServer());
  const Widgets = await installWidgets(client, "apps.test.konverge.dev");
  const runs = new Map<string, number>();
  const widgets = defineController({
    name: "widgets",
    for: Widgets,
    reconcile: async ({ object, kube }) => {
      const { name } = object.metadata;
      runs.set(name, (runs.get(name) ?? 0) + 1);
      await kube.mutateStatus(object, (draft) => {
        draft.status["runs"] = runs.get(name) ?? 0;
      });
    },
  });
  const settings = readSettings({
    env: {
      KONVERGE_REDIS_URL: redis.url,
      KONVERGE_KUBECONFIG: kubeconfig,
      KONVERGE_METRICS_PORT: "0",
      KONVERGE_API_PORT: "0",
      KONVERGE_LOG_LEVEL: "silent",
    },
  });
  const configOf = (shards: number) =>
    defineConfig({ controllers: [widgets], clusters: { default: { shards } } });
  /** Restarts the worker like a supervisor: it exits if Redis is too slow for a moment. */
  const run = (shards: number) =>
    until("Redis answers a worker that starts", () =>
      startWorkerProcess({ config: configOf(shards), settings, version: "1.2.3" }).catch(
        (error: unknown) => {
          if (isKonvergeError(error) && error.code === "redis_unavailable") return undefined;
          throw error;
        },
      ),
    );

  const worker = await run(6);
  cleanup.defer(() => worker.stop());
  await expect(run(3)).rejects.toMatchObject({ code: "shards_mismatch" });
  const names = Array.from({ length: OBJECTS }, (_, n) => `w-${n}`);
  await Promise.all(
    names.map((name) => client.create(Widgets, { metadata: { namespace, name }, spec: {} })),
  );
  await until("every object ran", () => runs.size === OBJECTS);

  const api = await startApi({ settings, version: "1.2.3" });
  cleanup.defer(() => api.stop());
  const post = (name: string) =>
    fetch(`${api.url}/v1/reconciles`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ controller: "widgets", namespace, name }),
    });
  // The API answers 503 while Redis is slow, which is not a fault.
  const taken = (name: string) =>
    until(`${name} is taken`, async () => {
      const response = await post(name);
      const { id } = (await response.json()) as { readonly id: string };
      return response.status === 202 && id;
    });
  const ids = await Promise.all(names.map(taken));
  const allFinished = async () => {
    for (const id of ids) {
      await until(`the end of ${id}`, async () => {
        const answer = await fetch(`${api.url}/v1/reconciles/${encodeURIComponent(id)}`);
        const state = (await answer.json()) as { readonly phase?: string };
        return state.phase === "finished";
      });
    }
  };
  await allFinished();
  const homes = await Promise.all(
    redis.primaries.map(async ({ port }) => {
      const node = new Redis({ port });
      const keys = await node.keys("konverge:{default/*}/key/*");
      node.disconnect();
      return keys.length;
    }),
  );
  expect(homes.reduce((sum, count) => sum + count, 0)).toBe(OBJECTS);
  expect(homes.filter((count) => count > 0).length).toBeGreaterThan(1);
  for (const path of ["/", "/jobs", "/v1/guards"]) {
    await until(`${path} answers`, async () => (await fetch(`${api.url}${path}`)).status === 200);
  }

  await redis.primaries[2]?.kill();
  const restarted = redis.restart(2);
  ids.length = 0;
  for (const name of names) ids.push(await taken(name));
  await restarted;
  await allFinished();
});
