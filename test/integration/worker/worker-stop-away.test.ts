import { defineConfig, WAITS_LEASE } from "@konverge/worker";
import { defineController, leaseName } from "@konverge/engine";
import { createHistoryReader } from "@konverge/queue";
import { defineSchedule, defineWorkflow, gone, openWorkflows } from "@konverge/workflow";
import { expect, onTestFinished, test } from "vitest";
import { Lease } from "@konverge/kube/kinds";
import { startTcpProxy } from "../../chaos/tcp-proxy.ts";
import { hold } from "../queue/queue-harness.ts";
import { useWorkers } from "./worker-harness.ts";
import { until } from "../../support/until.ts";

const workers = useWorkers("away.test.konverge.dev");
const namespace = "default";
const name = "a";
const GRACE_MS = 500;
/** The time of a pod after its grace period (docs/production.md). */
const POD_MS = 10_000;

/** Names of Leases in the log, with their controller. */
const LEASES = new Map([
  ["the leader Lease of widgets", "widgets"],
  ["the Lease of the watcher for runs that wait", WAITS_LEASE],
]);

/** A worker with every kind of resource: both kinds of Leases, a wait, a schedule, and an attempt that just ended. */
async function startBusy() {
  const { queues, server, client, Widgets } = workers;
  const { prefix, url, target } = queues;
  const redis = await startTcpProxy(Number(new URL(url).port));
  const kube = await startTcpProxy(Number(new URL(server.url).port));
  onTestFinished(async () => {
    await redis[Symbol.asyncDispose]();
    await kube[Symbol.asyncDispose]();
  });
  const { group, version, kind } = Widgets;
  const waits = defineWorkflow("waits", { version: 1 }, async (w) => {
    await w.waitFor("gone", gone({ apiVersion: `${group}/${version}`, kind, namespace, name }));
  });
  const tick = defineWorkflow("tick", { version: 1 }, async () => null);
  const reconciled = hold();
  const controller = defineController({
    name: "widgets",
    for: Widgets,
    reconcile: async () => reconciled.release(),
  });
  await client.create(Widgets, { metadata: { namespace, name }, spec: {} });
  const worker = await workers.start([], {
    redis: `redis://127.0.0.1:${redis.port}`,
    kubeconfig: {
      text: server.kubeconfig.replaceAll(server.url, `http://127.0.0.1:${kube.port}`),
    },
    config: defineConfig({
      controllers: [controller],
      workflows: [waits, tick],
      schedules: [defineSchedule("tick", { every: "1s", workflow: tick, input: undefined })],
      settings: { prefix },
    }),
  });
  const runs = openWorkflows({ redis: target, prefix });
  onTestFinished(() => runs.close());
  await runs.start(waits, undefined, { id: "it" });
  const holderOf = async (of: string) => {
    const { items } = await client.list(Lease, { namespace });
    const lease = items.find(({ metadata }) => metadata.name === leaseName(prefix, of));
    return lease?.spec?.holderIdentity;
  };
  for (const of of LEASES.values()) {
    await until(`the Lease ${of}`, async () => (await holderOf(of)) === worker.workerId);
  }
  await reconciled.wait();
  return { worker, redis, kube, holderOf };
}

/** Fails if the pod would have been killed. */
async function stopInTime(worker: Awaited<ReturnType<typeof startBusy>>["worker"]) {
  let stopped = false;
  const stop = async () => {
    await worker.stop({ graceMs: GRACE_MS });
    stopped = true;
  };
  const stopping = stop();
  await until("the worker has stopped", () => stopped, GRACE_MS + POD_MS);
  await stopping;
  return worker.lines
    .filter(({ message }) => message === "resource not released at shutdown")
    .map(({ fields }) => (fields as { readonly what: string }).what);
}

test.each([
  { away: "Redis, whose connections break,", redis: "cut", kube: undefined },
  { away: "Redis, which says nothing,", redis: "hold", kube: undefined },
  { away: "the API server, whose connections break,", redis: undefined, kube: "cut" },
  { away: "the API server, which says nothing,", redis: undefined, kube: "hold" },
  { away: "both, whose connections break,", redis: "cut", kube: "cut" },
  { away: "both, which say nothing,", redis: "hold", kube: "hold" },
] as const)("stops in time without $away, and logs unreleased resources", async (row) => {
  const { worker, redis, kube, holderOf } = await startBusy();
  if (row.redis !== undefined) redis[row.redis]();
  if (row.kube !== undefined) kube[row.kube]();
  const left = await stopInTime(worker);
  // Without Redis the guard may still have a token, and then the Lease is released.
  for (const [what, of] of LEASES) {
    expect([what, left.includes(what)]).toEqual([what, (await holderOf(of)) === worker.workerId]);
  }
  if (row.kube !== undefined) expect(left).toEqual(expect.arrayContaining([...LEASES.keys()]));
  // Rejected immediately, or timed out.
  const reported = worker.lines.map(({ fields }) =>
    String((fields as { readonly err?: Error }).err),
  );
  const stays = [...reported, ...left].some((text) =>
    /remains listed for|the list of workers/.test(text),
  );
  expect(stays).toBe(row.redis !== undefined);
});

test("a stop with all systems available releases everything", async () => {
  const { worker, holderOf } = await startBusy();
  expect(await stopInTime(worker)).toEqual([]);
  for (const of of LEASES.values()) expect([of, await holderOf(of)]).toEqual([of, ""]);
  const { prefix, redis, target } = workers.queues;
  expect(await redis.hlen(`${prefix}:{default}/workers`)).toBe(0);
  const reader = createHistoryReader({
    redis: target,
    prefix,
    cluster: "default",
    onError: () => undefined,
  });
  onTestFinished(() => reader.close());
  const { items } = await reader.search({ limit: 10 });
  expect(items).toContainEqual(
    expect.objectContaining({ key: expect.stringMatching(/^widgets\/.*\/a$/), outcome: "done" }),
  );
});
