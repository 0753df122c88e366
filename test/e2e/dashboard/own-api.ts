import { createServer, request, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { pipeline } from "node:stream";
import { openQueueAccess, startApi, type QueueAccess } from "@konverge/api";
import { readSettings } from "@konverge/contracts";
import {
  createControllerRegistry,
  type AnnouncedController,
  type AnnouncedLoad,
  type WorkQueue,
} from "@konverge/queue";
import { onTestFinished } from "vitest";
import { NODE_POOL } from "../../integration/queue/announce.ts";
import type { QueueHarness } from "../../integration/queue/queue-harness.ts";

export interface OwnApi {
  readonly url: string;
  readonly access: QueueAccess;
  readonly queue: WorkQueue;
}

const LOAD: AnnouncedLoad = {
  slots: { "node-pool": { running: 3, limit: 20 } },
  memoryBytes: 200 * 1_048_576,
  heapBytes: 1,
  heapLimitBytes: 2,
  eventLoopDelayMs: 4,
  calls: { admitted: 100, deferred: 2, waiting: { resync: 5, event: 2 }, inFlight: 6 },
  attemptsPerMinute: 30,
  leads: ["node-pool"],
};

/** Starts an API server on the test's Redis prefix, with one announced controller and the heartbeat of a worker. */
export async function startOwnApi(
  harness: QueueHarness,
  env: Readonly<Record<string, string>> = {},
  {
    readsObjects = false,
    controller = NODE_POOL,
  }: { readonly readsObjects?: boolean; readonly controller?: AnnouncedController } = {},
): Promise<OwnApi> {
  const redis = harness.target;
  const registry = createControllerRegistry({ redis, cluster: "default", prefix: harness.prefix });
  await registry.announce([controller]);
  const stopHeartbeat = registry.heartbeat(
    {
      workerId: "w-1",
      controllers: ["node-pool"],
      definitions: {},
      role: "all",
      version: "test",
      startedAt: "2026-01-01T00:00:00Z",
      host: "here",
      readsObjects,
    },
    { load: () => LOAD },
  );
  const api = await startApi({
    settings: readSettings({
      env: {
        KONVERGE_REDIS_URL: harness.apiUrl,
        KONVERGE_PREFIX: harness.prefix,
        KONVERGE_API_PORT: "0",
        KONVERGE_LOG_LEVEL: "silent",
        ...env,
      },
    }),
    version: "test",
  });
  const access = openQueueAccess({
    redis: harness.apiTarget,
    prefix: harness.prefix,
    onError: () => undefined,
  });
  onTestFinished(async () => {
    await api.stop();
    await access.close();
    await stopHeartbeat();
    await registry.close();
  });
  const { queue } = await access.find("default", "node-pool");
  return { url: api.url, access, queue };
}

/** Starts a proxy that serves `target` below `base` and strips `base`. Returns its address. */
export async function startProxy(target: string, base: string): Promise<string> {
  const server: Server = createServer((incoming, outgoing) => {
    const path = incoming.url ?? "";
    if (!path.startsWith(base)) {
      outgoing.writeHead(404).end(`${path} is not below ${base}`);
      return;
    }
    const { hostname, port } = new URL(target);
    const options = {
      hostname,
      port,
      path: path.slice(base.length - 1),
      method: incoming.method,
      headers: incoming.headers,
    };
    const forwarded = request(options, (response) => {
      // The page was left meanwhile.
      if (outgoing.destroyed) return void response.resume();
      outgoing.writeHead(response.statusCode ?? 502, response.headers);
      // A page that is left, or an API that stops, resets its streams.
      pipeline(response, outgoing, () => undefined);
    });
    forwarded.on("error", () => outgoing.destroy());
    pipeline(incoming, forwarded, () => undefined);
  });
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  onTestFinished(
    () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  );
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}${base}`;
}
