import { overviewSchema, type Overview } from "@konverge/contracts";
import type { CallResult } from "@konverge/core";
import { createGuard, type Guard } from "@konverge/guard";
import { createControllerRegistry } from "@konverge/queue";
import { expect, onTestFinished, test } from "vitest";
import { NODE_POOL } from "../queue/announce.ts";
import { useApi } from "./api-harness.ts";
import { until } from "../../support/until.ts";

const api = useApi({ announces: false });
const harness = api.queues;

const STATE = "{default}/guard";

async function overview(): Promise<Overview> {
  const response = await api.serve({})("/v1/overview");
  expect(response.status).toBe(200);
  return overviewSchema.parse(await response.json());
}

async function announce(): Promise<void> {
  const registry = createControllerRegistry({
    redis: harness.target,
    cluster: "default",
    prefix: harness.prefix,
  });
  await registry.announce([NODE_POOL]);
  onTestFinished(() => registry.close());
}

async function openGuard(): Promise<Guard> {
  const guard = await createGuard({
    redis: harness.target,
    prefix: harness.prefix,
    cluster: "default",
    workerId: "w-1",
    limits: { ratePerSecond: 500, breaker: { openMs: 100, maxOpenMs: 100 } },
  });
  onTestFinished(() => guard.close());
  return guard;
}

/** One call through the guard. False if it was not sent. */
async function callThrough(guard: Guard, result: CallResult): Promise<boolean> {
  const call = { verb: "get", resource: "nodepools.", priority: "event" } as const;
  const permit = await guard.admit(call).catch(() => undefined);
  permit?.settle(result);
  return permit !== undefined;
}

const outageOf = ({ problems }: Overview) =>
  problems.find(({ code }) => code === "api_server_outage");

test("an outage is one problem, from its first failures until calls have succeeded for a while", async () => {
  await announce();
  const guard = await openGuard();
  await callThrough(guard, { kind: "response", status: 200 });
  expect(outageOf(await overview())).toBeUndefined();

  for (let calls = 0; calls < 3; calls++) await callThrough(guard, { kind: "timeout" });
  const first = await until("the failures are reported", async () => outageOf(await overview()));
  expect(guard.breaker.mode, "before the breaker opens").toBe("closed");
  expect(first).toMatchObject({
    level: "error",
    cause: "timeout",
    message: expect.stringMatching(/^API server of default is failing( for 1 of 1 worker)?$/),
    consequence: expect.stringContaining("0 requests queued, none lost"),
    action: expect.any(String),
  });

  // The breaker opens, and several probes fail.
  const modes = new Set<string>();
  let probes = 0;
  await until("four probes have failed", async () => {
    modes.add(guard.breaker.mode);
    const isSent = await callThrough(guard, { kind: "response", status: 503 });
    if (isSent && modes.has("open")) probes += 1;
    const found = outageOf(await overview());
    expect(found).toMatchObject({
      level: "error",
      since: first.since,
      message: expect.stringContaining("is failing"),
    });
    return probes >= 4;
  });
  expect(outageOf(await overview())?.cause).toBe("HTTP 503");

  await until("calls succeed again", async () => {
    await callThrough(guard, { kind: "response", status: 200 });
    return guard.breaker.mode === "closed";
  });
  expect(outageOf(await overview())).toMatchObject({
    level: "error",
    since: first.since,
    message: "API server of default is recovering from an outage",
  });
  // 31 s without a failure.
  await harness.redis.hset(`${harness.prefix}:${STATE}`, "outageSeenMs", Date.now() - 31_000);
  expect(outageOf(await overview())).toBeUndefined();
});

test("a single failure is not an outage", async () => {
  await announce();
  const guard = await openGuard();
  for (let calls = 0; calls < 10; calls++) {
    await callThrough(guard, { kind: "response", status: calls === 5 ? 500 : 200 });
  }
  await until("the calls are reported", async () => {
    return Number(await harness.redis.hget(`${harness.prefix}:${STATE}`, "total")) > 5;
  });
  expect(outageOf(await overview())).toBeUndefined();
});

test("an outage explains the backlog of its controllers", async () => {
  await announce();
  const registry = createControllerRegistry({
    redis: harness.target,
    cluster: "default",
    prefix: harness.prefix,
  });
  onTestFinished(() => registry.close());
  const stop = registry.heartbeat({
    workerId: "w-1",
    controllers: ["node-pool"],
    definitions: {},
    role: "all",
    version: "test",
    startedAt: "2026-01-01T00:00:00Z",
    host: "here",
  });
  onTestFinished(stop);
  await until("the worker lives", async () => (await api.access.workers("default")).length === 1);
  const guard = await openGuard();
  const { queue } = await api.access.find("default", "node-pool");
  await queue.request(
    {
      controller: "node-pool",
      cluster: "default",
      resource: "nodepools",
      group: "demo.konverge.dev",
      namespace: "demo",
      name: "blue",
    },
    { kind: "cli", by: "test" },
  );
  const [{ queue: raw } = { queue: undefined }] = await api.access.rawQueues({
    ...NODE_POOL,
  });
  const [job] = (await raw?.getJobs(["wait", "prioritized"])) ?? [];
  expect(job).toBeDefined();
  await harness.redis.hset(raw?.toKey(job?.id ?? "") ?? "", "timestamp", Date.now() - 300_000);
  expect((await overview()).problems.map(({ code }) => code)).toEqual(["backlog"]);
  for (let calls = 0; calls < 3; calls++) await callThrough(guard, { kind: "network" });
  const found = await until("the failures are reported", async () => {
    const answer = await overview();
    return outageOf(answer) === undefined ? undefined : answer;
  });
  expect(found.summary).toBe("1 error.");
  expect(found.problems).toMatchObject([
    {
      code: "api_server_outage",
      cause: "no connection",
      consequence: expect.stringContaining("1 request queued, none lost"),
      symptoms: [{ code: "backlog", controller: "node-pool" }],
    },
  ]);
});
