import { createApi, openQueueAccess } from "@konverge/api";
import {
  guardListSchema,
  guardViewSchema,
  problemSchema,
  type GuardView,
} from "@konverge/contracts";
import { DEFAULT_BREAKER_LIMITS } from "@konverge/core";
import { startRedis } from "@konverge/infra-redis";
import { createGuard, openGuardControl, type Guard } from "@konverge/guard";
import { createControllerRegistry, type RedisTarget } from "@konverge/queue";
import { createMetrics } from "@konverge/telemetry";
import { expect, onTestFinished, test } from "vitest";
import { NODE_POOL } from "../queue/announce.ts";
import { useQueues } from "../queue/queue-harness.ts";
import { until } from "../../support/until.ts";

const harness = useQueues();
const ORDER = { by: "ada", reason: "etcd is being defragmented" };

/** An API over this Redis, as `startApi` puts it together. */
function openApi(redis: RedisTarget = harness.apiTarget) {
  const { prefix } = harness;
  const access = openQueueAccess({ redis, prefix, onError: () => undefined });
  const guards = openGuardControl({ redis, prefix });
  onTestFinished(async () => {
    await Promise.all([access.close(), guards.close()]);
  });
  const { fetch } = createApi({
    access,
    guards,
    metrics: createMetrics({ version: "test" }),
    token: undefined,
    cluster: "default",
    onError: () => undefined,
  });
  return async (path: string, method = "GET", body?: unknown) =>
    await fetch(
      new Request(`http://localhost:7070${path}`, {
        method,
        headers: { host: "localhost:7070", "content-type": "application/json" },
        ...(body === undefined
          ? {}
          : { body: typeof body === "string" ? body : JSON.stringify(body) }),
      }),
    );
}

/** Stores the Redis keys that a worker writes at its start. */
async function announce(cluster: string): Promise<void> {
  const { prefix, target } = harness;
  const registry = createControllerRegistry({ redis: target, cluster, prefix });
  await registry.announce([{ ...NODE_POOL, cluster }]);
  await registry.close();
}
async function guardOf(cluster: string): Promise<Guard> {
  const { prefix, target } = harness;
  await announce(cluster);
  const guard = await createGuard({
    redis: target,
    prefix,
    cluster,
    workerId: `worker-of-${cluster}`,
    limits: { ratePerSecond: 500 },
  });
  onTestFinished(() => guard.close());
  return guard;
}
const viewOf = async (response: Response): Promise<GuardView> => {
  expect(response.status).toBe(200);
  return guardViewSchema.strict().parse(await response.json());
};
async function problemOf(response: Response, status: number) {
  expect(response.status).toBe(status);
  expect(response.headers.get("content-type")).toBe("application/problem+json");
  return problemSchema.parse(await response.json());
}
/** One call through a guard, as a worker makes it. */
async function callThrough(guard: Guard): Promise<void> {
  const permit = await guard.admit({ verb: "get", resource: "nodepools.", priority: "event" });
  permit.settle({ kind: "response", status: 200 });
}

test("lists the guards of all clusters with controllers", async () => {
  const call = openApi();
  expect(await (await call("/v1/guards")).json()).toEqual({ items: [] });
  await guardOf("edge/2");
  await callThrough(await guardOf("default"));
  await announce("never-guarded");
  const { items } = await until("the call is reported", async () => {
    const list = guardListSchema.parse(await (await call("/v1/guards")).json());
    return list.items[0]?.workers.live.length === 1 && list;
  });
  expect(items).toMatchObject([
    {
      cluster: "default",
      breaker: { state: "closed", limits: DEFAULT_BREAKER_LIMITS },
      rate: { current: 500, limits: { ratePerSecond: 500, burst: 1_000 } },
      workers: { live: ["worker-of-default"], failing: [] },
      transitions: [],
    },
    { cluster: "edge/2" },
  ]);
  const one = await viewOf(await call("/v1/guards/edge%2F2"));
  expect(one.rate.setBy).toBe("worker-of-edge/2");
});

test("isolates an API server until a reset, with author and reason", async () => {
  const call = openApi();
  const guard = await guardOf("default");
  await callThrough(guard);
  const isolated = await viewOf(await call("/v1/guards/default/isolate", "POST", ORDER));
  expect(isolated.breaker).toMatchObject({ state: "isolated", isolated: ORDER });
  expect(isolated.transitions[0]).toMatchObject({
    from: "closed",
    to: "isolated",
    by: ORDER.by,
    operatorReason: ORDER.reason,
  });
  await until("the worker knows", () => guard.breaker.mode === "isolated");
  await expect(callThrough(guard)).rejects.toMatchObject({ code: "deferred" });

  const back = { by: "grace", reason: "done" };
  const reset = await viewOf(await call("/v1/guards/default/reset", "POST", back));
  expect(reset.breaker.state).toBe("closed");
  expect(reset.breaker.isolated).toBeUndefined();
  // As after an outage: a fifth of the rate, from which it climbs.
  expect(reset.rate.current).toBe(100);
  expect(reset.transitions[0]).toMatchObject({ from: "isolated", to: "closed", by: "grace" });
  await until("the worker knows", () => guard.breaker.mode === "closed");
  await callThrough(guard);
});

test("applies a rate override to all workers until it is removed", async () => {
  const call = openApi();
  await guardOf("default");
  const path = "/v1/guards/default/rate";
  const set = await viewOf(await call(path, "PUT", { ratePerSecond: 20, ...ORDER }));
  expect(set.rate).toMatchObject({
    current: 20,
    limits: { ratePerSecond: 20 },
    override: { ratePerSecond: 20, ...ORDER },
  });
  await guardOf("default");
  const later = await viewOf(await call("/v1/guards/default"));
  expect(later.rate.limits.ratePerSecond).toBe(20);
  const given = await viewOf(await call(path, "PUT", { ratePerSecond: null, ...ORDER }));
  expect(given.rate).toMatchObject({ current: 500, limits: { ratePerSecond: 500 } });
  expect(given.rate.override).toBeUndefined();
});

const ISOLATE = ["/v1/guards/default/isolate", "POST"] as const;
const RATE = ["/v1/guards/default/rate", "PUT"] as const;
test.each([
  ["no author and no reason", ...ISOLATE, {}, ["/by", "/reason"]],
  ["spaces only", ...ISOLATE, { by: " ", reason: "\t" }, ["/by", "/reason"]],
  ["too long a reason", ...ISOLATE, { by: "a", reason: "x".repeat(201) }, ["/reason"]],
  ["an unknown field", ...ISOLATE, { ...ORDER, rate: 5 }, ["/rate"]],
  ["no rate", ...RATE, ORDER, ["/ratePerSecond"]],
  ["rate 0", ...RATE, { ...ORDER, ratePerSecond: 0 }, ["/ratePerSecond"]],
  ["a negative rate", ...RATE, { ...ORDER, ratePerSecond: -1 }, ["/ratePerSecond"]],
  ["a huge rate", ...RATE, { ...ORDER, ratePerSecond: 1e9 }, ["/ratePerSecond"]],
  ["a rate without end", ...RATE, '{"by":"a","reason":"b","ratePerSecond":1e999}', undefined],
  ["a tiny rate", ...RATE, { ...ORDER, ratePerSecond: 1e-300 }, ["/ratePerSecond"]],
  ["text", ...RATE, { ...ORDER, ratePerSecond: "5" }, ["/ratePerSecond"]],
  ["all of it", ...RATE, { ratePerSecond: -1 }, ["/by", "/ratePerSecond", "/reason"]],
])("%s returns 422 with a pointer per error and changes nothing", async (...row) => {
  const [, path, method, body, pointers = ["/ratePerSecond"]] = row;
  const call = openApi();
  await guardOf("default");
  const before = await viewOf(await call("/v1/guards/default"));
  const problem = await problemOf(await call(path, method, body), 422);
  expect(problem.errors?.map(({ pointer }) => pointer).toSorted()).toEqual(pointers);
  for (const { detail } of problem.errors ?? []) expect(detail).toMatch(/must|remove/);
  expect(await viewOf(await call("/v1/guards/default"))).toEqual(before);
});

test.each([
  ["/v1/guards/unknown", "GET", undefined],
  ["/v1/guards/unknown/isolate", "POST", ORDER],
  ["/v1/guards/unknown/reset", "POST", ORDER],
  ["/v1/guards/unknown/rate", "PUT", { ...ORDER, ratePerSecond: 5 }],
])("%s returns 404 for a cluster without a guard", async (path, method, body) => {
  const problem = await problemOf(await openApi()(path, method, body), 404);
  expect(problem.code).toBe("not_found");
});

test("returns 503 without Redis instead of waiting", async () => {
  const redis = await startRedis({ appendonly: false });
  onTestFinished(() => redis.kill());
  const hanging = openApi(redis);
  expect((await hanging("/v1/guards")).status).toBe(200);
  process.kill(redis.pid, "SIGSTOP");
  const requests = [
    ["/v1/guards", "GET", undefined],
    ["/v1/guards/default", "GET", undefined],
    [...ISOLATE, ORDER],
    [...RATE, { ...ORDER, ratePerSecond: 5 }],
  ] as const;
  // At once: each call waits for its own deadline.
  await Promise.all(
    [hanging, openApi({ url: "redis://127.0.0.1:1" })].flatMap((call) =>
      requests.map(async ([path, method, body]) => {
        const response = await call(path, method, body);
        expect(Number(response.headers.get("retry-after"))).toBeGreaterThan(0);
        expect((await problemOf(response, 503)).code).toBe("redis_unavailable");
      }),
    ),
  );
});
