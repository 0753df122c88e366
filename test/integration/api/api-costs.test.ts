import { startRedis, type RunningRedis } from "@konverge/apiserver";
import { createApi, openQueueAccess } from "@konverge/api";
import { explanationSchema, overviewSchema } from "@konverge/contracts";
import { openGuardControl } from "@konverge/guard";
import { createControllerRegistry, createHistoryReader, createWorkQueue } from "@konverge/queue";
import { createMetrics } from "@konverge/telemetry";
import { Redis } from "ioredis";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { NODE_POOL } from "../queue/announce.ts";
import { PATIENT_MS } from "../../support/patient.ts";
import { countCosts } from "../../support/redis-entries.ts";

/**
 * Commands of an overview: 60 minutes of the cluster's values, the script with the state of the Redis server, and others. Those of a
 * controller are 60 minutes of counters, and its queue.
 */
const FIXED = 60 + 4 + 20;
const PER_CONTROLLER = 70;

let server: RunningRedis;
let redis: Redis;
/** For callers that wait for Redis as long as it takes. */
const target = () => ({ url: server.url, deadlineMs: PATIENT_MS });
beforeAll(async () => {
  server = await startRedis();
  redis = new Redis(server.url);
});
afterAll(async () => {
  redis.disconnect();
  await server.stop();
});

const counted = (work: () => Promise<unknown>) => countCosts({ redis, url: server.url }, work);

/** Opens an API, which is closed after the test. Returns its GET. */
function openedApi(prefix: string): (path: string) => Promise<unknown> {
  const onError = (error: unknown) => expect.unreachable(String(error));
  const access = openQueueAccess({ redis: target(), prefix, onError });
  const guards = openGuardControl({ redis: target(), prefix });
  const api = createApi({
    access,
    guards,
    metrics: createMetrics({ version: "test" }),
    token: undefined,
    cluster: "default",
    onError,
  });
  onTestFinished(async () => {
    api.close();
    await Promise.all([access.close(), guards.close()]);
  });
  return async (path) => {
    const url = `http://localhost:7070${path}`;
    const response = await api.fetch(new Request(url, { headers: { host: "localhost:7070" } }));
    const answer: unknown = await response.json();
    expect(response.status, JSON.stringify(answer)).toBe(200);
    return answer;
  };
}

test("the wasted writes of an hour are one command", async () => {
  const onError = () => undefined;
  const reader = createHistoryReader({ redis: target(), cluster: "default", onError });
  onTestFinished(() => reader.close());
  // Opens the connection, and sends the script.
  await reader.wastedWrites();
  expect((await counted(() => reader.wastedWrites())).calls).toBe(1);
});

test("an overview needs few commands besides those of its controllers", async () => {
  for (const controllers of [1, 3]) {
    const prefix = `costs-${controllers}`;
    const registry = createControllerRegistry({
      redis: target(),
      cluster: "default",
      prefix,
    });
    await registry.announce(
      Array.from({ length: controllers }, (_, at) => ({ ...NODE_POOL, name: `pools-${at}` })),
    );
    await registry.close();
    const get = openedApi(prefix);
    const read = async () => {
      expect(overviewSchema.parse(await get("/v1/overview")).controllers).toHaveLength(controllers);
    };
    await read();
    const { calls } = await counted(read);
    expect(calls, `${controllers} controllers`).toBeLessThanOrEqual(
      FIXED + PER_CONTROLLER * controllers,
    );
  }
});

test("an explanation needs at most 40 commands", async () => {
  const prefix = "costs-explain";
  const place = { redis: target(), cluster: "default", prefix };
  const registry = createControllerRegistry(place);
  await registry.announce([NODE_POOL]);
  await registry.close();
  const onError = (error: unknown) => expect.unreachable(String(error));
  const queue = createWorkQueue({ ...place, controller: NODE_POOL.name, onError });
  const { group, resource, name: controller } = NODE_POOL;
  const key = { controller, cluster: "default", group, resource, namespace: "demo", name: "blue" };
  await queue.request(key, { kind: "cli" });
  const read = openedApi(prefix);
  const ask = async () => {
    const found = explanationSchema.parse(
      await read(`/v1/objects/default/${controller}/demo/blue/explanation`),
    );
    expect(found.causes[0]?.code).toBe("no_workers");
  };
  await ask();
  expect((await counted(ask)).calls).toBeLessThanOrEqual(40);
  await queue.close();
});
