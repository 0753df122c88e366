import {
  activitySchema,
  guardListSchema,
  overviewSchema,
  problemSchema,
} from "@konverge/contracts";
import { createControllerRegistry, durationCounter, type AnnouncedLoad } from "@konverge/queue";
import { createGuard, openGuardControl } from "@konverge/guard";
import { clusterRoot } from "@konverge/redis";
import { startSampling, takeSample } from "../../../libs/api/src/views/sample-gauges.ts";
import { expect, onTestFinished, test } from "vitest";
import { NODE_POOL } from "../queue/announce.ts";
import { keyOf } from "../queue/queue-harness.ts";
import { useApi } from "./api-harness.ts";
import { until } from "../../support/until.ts";
import { attemptRow, historyBatch, openHistoryWriter } from "../../support/history-batch.ts";
import { PATIENT_MS } from "../../support/patient.ts";

const api = useApi({ announces: false });
const harness = api.queues;

const MINUTE = Math.floor(Date.now() / 60_000);
const GREEN = "nodepools.demo.konverge.dev/demo/green";
const KEY = "node-pool/default/nodepools.demo.konverge.dev/demo/blue";
const LOAD: AnnouncedLoad = {
  slots: { "node-pool": { running: 3, limit: 20 } },
  memoryBytes: 1,
  heapBytes: 1,
  heapLimitBytes: 2,
  eventLoopDelayMs: 4,
  calls: { admitted: 100, deferred: 2, waiting: { resync: 5, event: 2 }, inFlight: 6 },
};

/** Announces a controller and a worker whose load is `load` at each heartbeat. */
async function announce(load: AnnouncedLoad = LOAD): Promise<void> {
  const registry = createControllerRegistry({
    redis: { url: harness.url },
    cluster: "default",
    prefix: harness.prefix,
  });
  await registry.announce([NODE_POOL]);
  onTestFinished(() => registry.close());
  const stop = registry.heartbeat(
    {
      workerId: "w-1",
      controllers: ["node-pool"],
      definitions: { "node-pool": { kind: "NodePool", digest: "0123456789" } },
      role: "all",
      version: "test",
      startedAt: "2026-01-01T00:00:00Z",
      host: "here",
    },
    { load: () => load },
  );
  onTestFinished(stop);
  await until("the worker lives", async () => (await api.access.workers("default")).length === 1);
}

async function remember(): Promise<void> {
  const writer = openHistoryWriter(harness);
  await writer.flush(
    historyBatch({
      rows: (["retry", "done", "retry"] as const).map((outcome, epoch) => ({
        recordBytes: 100,
        row: attemptRow({
          key: KEY,
          epoch,
          outcome,
          errorCode: outcome === "retry" ? "quota" : "",
          conflicts: epoch,
          managers: epoch === 1 ? ["argocd"] : [],
        }),
      })),
      wasted: [{ object: GREEN, controller: "node-pool", minute: MINUTE, writes: 7 }],
      contention: [
        {
          object: GREEN,
          conflicts: 0,
          pairs: [{ kind: "takeover", manager: "helm", path: "spec.size", count: 7 }],
        },
      ],
      rollups: [
        {
          controller: "node-pool",
          minute: MINUTE,
          counts: {
            "outcome.done": 1,
            "outcome.retry": 2,
            [durationCounter(10)]: 2,
            [durationCounter(1_000)]: 1,
          },
        },
      ],
    }),
  );
  await writer.close();
}

async function sample(): Promise<void> {
  const guards = openGuardControl({ redis: { url: harness.url }, prefix: harness.prefix });
  await api.access
    .gauges("default")
    .note(await takeSample({ access: api.access, guards }, "default"));
  await guards.close();
}

async function get(path: string, token?: string): Promise<unknown> {
  const call = api.serve({ isLoopback: token === undefined });
  return await (await call(path, token === undefined ? {} : { token })).json();
}

test("joins attempts, durations and measured values per minute", async () => {
  await announce();
  const guard = await createGuard({
    redis: { url: harness.url },
    prefix: harness.prefix,
    cluster: "default",
    workerId: "w-1",
  });
  onTestFinished(() => guard.close());
  await remember();
  const { queue } = await api.access.find("default", "node-pool");
  await queue.request(keyOf("blue"), { kind: "cli", by: "test" });
  await sample();
  const activity = activitySchema.parse(await get("/v1/activity?controller=node-pool&minutes=5"));
  expect(activity.items).toHaveLength(5);
  const sum = (of: "ok" | "failed" | "conflict") =>
    activity.items.reduce((all, minute) => all + minute[of], 0);
  expect([sum("ok"), sum("failed"), sum("conflict")]).toEqual([1, 2, 0]);
  const durations = activity.items.find(({ p50Ms }) => p50Ms !== undefined);
  expect(durations?.p50Ms).toBeLessThan(20);
  expect(durations?.p99Ms).toBeGreaterThan(900);
  const measured = activity.items.filter(({ waiting }) => waiting !== undefined);
  expect(measured).toMatchObject([{ waiting: 1, isPaused: false, breaker: "closed" }]);
  expect(activity.errors).toEqual([{ code: "quota", attempts: 2 }]);
  expect(activity.objects).toEqual([
    { key: KEY.replace("blue", "green"), failed: 0, conflicts: 0, wastedWrites: 7 },
    { key: KEY, failed: 2, conflicts: 3, wastedWrites: 0 },
  ]);
  expect(activity.managers).toEqual([
    { manager: "helm", attempts: 0, flips: 7 },
    { manager: "argocd", attempts: 1, flips: 0 },
  ]);

  const overview = overviewSchema.parse(await get("/v1/overview"));
  expect(overview.activity).toHaveLength(60);
  expect(overview.activity.some(({ waiting }) => waiting === 1)).toBe(true);
  expect(overview.controllers).toMatchObject([{ slots: 20 }]);

  const guards = guardListSchema.parse(await get("/v1/guards?minutes=5"));
  expect(guards.items).toMatchObject([{ waitingCalls: { resync: 5, event: 2 }, inFlight: 6 }]);
  expect(guards.items[0]?.activity.some(({ waitingCalls }) => waitingCalls === 7)).toBe(true);
});

test("activity stays within the scope of a token", async () => {
  await announce();
  await remember();
  const other = await api.token("other", { role: "viewer", scope: { controllers: ["backup"] } });
  expect(problemSchema.parse(await get("/v1/activity?controller=node-pool", other))).toMatchObject({
    code: "forbidden",
  });
  const all = activitySchema.parse(await get("/v1/activity", other));
  expect(all.items.every(({ ok, failed }) => ok + failed === 0)).toBe(true);
  const blind = await api.token("blind", { role: "viewer", scope: { namespaces: ["elsewhere"] } });
  const activity = activitySchema.parse(await get("/v1/activity?controller=node-pool", blind));
  expect([activity.sampled, activity.objects, activity.errors]).toEqual([0, [], []]);
  expect(JSON.stringify(activity)).not.toMatch(/blue|green|helm/);
});

test("a cluster that cannot be measured does not keep the others from being measured", async () => {
  await announce();
  const { prefix, redis, url } = harness;
  const other = createControllerRegistry({
    redis: { url, deadlineMs: PATIENT_MS },
    cluster: "a-newer",
    prefix,
  });
  onTestFinished(() => other.close());
  await other.announce([{ ...NODE_POOL, cluster: "a-newer" }]);
  await redis.hset(`${clusterRoot(prefix, "a-newer")}/format`, "format", 99);
  const errors: unknown[] = [];
  const stop = startSampling({
    access: api.access,
    guards: api.guards,
    onError: (error) => errors.push(error),
  });
  onTestFinished(stop);
  await until("the other cluster is measured", async () => {
    return (await api.access.gauges("default").read(2)).length > 0;
  });
  expect(errors).toMatchObject([{ code: "format_mismatch" }]);
});
