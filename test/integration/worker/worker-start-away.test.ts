import { rm, writeFile } from "node:fs/promises";
import { createServer, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readSettings } from "@konverge/contracts";
import { defineController } from "@konverge/engine";
import { defineConfig, startWorkerProcess } from "@konverge/worker";
import { expect, onTestFinished, test } from "vitest";
import { startTcpProxy } from "../../chaos/tcp-proxy.ts";
import { until } from "../../support/until.ts";
import { useWorkers } from "./worker-harness.ts";

const workers = useWorkers("away.test.konverge.dev");

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

const portOf = (url: string) => Number(new URL(url).port);
const statusAt = async (url: string) =>
  await fetch(url).then(
    ({ status }) => status,
    () => undefined,
  );

test("a worker process waits, alive and not ready, until Redis and the API server are back", async () => {
  const redis = await startTcpProxy(portOf(workers.queues.url));
  const kubePort = Number(/server: \S+?:(\d+)/.exec(workers.server.kubeconfig)?.[1]);
  const kube = await startTcpProxy(kubePort);
  onTestFinished(async () => {
    await redis[Symbol.asyncDispose]();
    await kube[Symbol.asyncDispose]();
  });
  redis.cut();
  kube.cut();
  const kubeconfig = join(tmpdir(), `konverge-away-${process.pid}.yaml`);
  await writeFile(kubeconfig, workers.server.kubeconfig.replace(`:${kubePort}`, `:${kube.port}`));
  onTestFinished(() => rm(kubeconfig));
  const metricsPort = await freePort();
  const seen: string[] = [];
  const controller = defineController({
    name: "widgets",
    for: workers.Widgets,
    reconcile: async ({ object }) => void seen.push(object.metadata.name),
  });
  const starting = startWorkerProcess({
    config: defineConfig({ controllers: [controller] }),
    settings: readSettings({
      file: {
        redisUrl: `redis://127.0.0.1:${redis.port}`,
        prefix: workers.queues.prefix,
        kubeconfig,
        metricsPort,
        logLevel: "silent",
      },
      env: {},
    }),
    version: "1",
  });
  const url = `http://127.0.0.1:${metricsPort}`;
  await until("it is alive", async () => (await statusAt(`${url}/livez`)) === 200);
  expect(await statusAt(`${url}/readyz`)).toBe(503);
  // Reported as a worker that is not ready, so that the alert names Redis.
  await until("it is counted", async () => {
    const text = await (await fetch(`${url}/metrics`)).text();
    return text.includes('konverge_worker_ready{cluster="default",role="all"');
  });
  redis.heal();
  await workers.client.create(workers.Widgets, {
    metadata: { namespace: "default", name: "one" },
    spec: {},
  });
  expect(await statusAt(`${url}/readyz`)).toBe(503);
  kube.heal();
  const worker = await starting;
  expect(await statusAt(`${url}/readyz`)).toBe(200);
  await until("it reconciles", () => seen.includes("one"));
  await worker.stop();
});

test("a worker process exits with the error when the time to wait is over", async () => {
  const settings = readSettings({
    file: {
      redisUrl: "redis://127.0.0.1:1",
      metricsPort: 0,
      startTimeout: "0s",
      logLevel: "silent",
    },
    env: {},
  });
  const config = defineConfig({
    controllers: [
      defineController({ name: "widgets", for: workers.Widgets, reconcile: async () => undefined }),
    ],
  });
  await expect(startWorkerProcess({ config, settings, version: "1" })).rejects.toMatchObject({
    code: "redis_unavailable",
  });
});
