import { startRedis, type RunningRedis } from "@konverge/apiserver";
import { createApi, openQueueAccess } from "@konverge/api";
import { overviewSchema } from "@konverge/contracts";
import { openGuardControl } from "@konverge/guard";
import { createControllerRegistry, createHistoryReader } from "@konverge/queue";
import { createMetrics } from "@konverge/telemetry";
import { Redis } from "ioredis";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { NODE_POOL } from "../queue/announce.ts";
import { countCosts } from "../../support/redis-entries.ts";

/**
 * Commands of an overview: 60 minutes of the cluster's values, the script with the state of the Redis server, and others. Those of a
 * controller are 60 minutes of counters, and its queue.
 */
const FIXED = 60 + 4 + 20;
const PER_CONTROLLER = 70;

let server: RunningRedis;
let redis: Redis;
beforeAll(async () => {
  server = await startRedis();
  redis = new Redis(server.url);
});
afterAll(async () => {
  redis.disconnect();
  await server.stop();
});

const counted = (work: () => Promise<unknown>) => countCosts({ redis, url: server.url }, work);

test("the wasted writes of an hour are one command", async () => {
  const onError = () => undefined;
  const reader = createHistoryReader({ redis: { url: server.url }, cluster: "default", onError });
  onTestFinished(() => reader.close());
  // Opens the connection, and sends the script.
  await reader.wastedWrites();
  expect((await counted(() => reader.wastedWrites())).calls).toBe(1);
});

test("an overview needs few commands besides those of its controllers", async () => {
  for (const controllers of [1, 3]) {
    const prefix = `costs-${controllers}`;
    const registry = createControllerRegistry({
      redis: { url: server.url },
      cluster: "default",
      prefix,
    });
    await registry.announce(
      Array.from({ length: controllers }, (_, at) => ({ ...NODE_POOL, name: `pools-${at}` })),
    );
    await registry.close();
    const onError = (error: unknown) => expect.unreachable(String(error));
    const access = openQueueAccess({ redis: server, prefix, onError });
    const guards = openGuardControl({ redis: { url: server.url }, prefix });
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
    const read = async () => {
      const url = "http://localhost:7070/v1/overview";
      const response = await api.fetch(new Request(url, { headers: { host: "localhost:7070" } }));
      expect(overviewSchema.parse(await response.json()).controllers).toHaveLength(controllers);
    };
    await read();
    const { calls } = await counted(read);
    expect(calls, `${controllers} controllers`).toBeLessThanOrEqual(
      FIXED + PER_CONTROLLER * controllers,
    );
  }
});
