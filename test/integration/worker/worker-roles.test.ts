import { defineController, type Controller, type ReconcileContext } from "@konverge/engine";
import { createControllerRegistry } from "@konverge/queue";
import { expect, test } from "vitest";
import { Lease } from "@konverge/kube/kinds";
import type { Widget } from "../kube/kube-servers.ts";
import { useWorkers } from "./worker-harness.ts";
import { until } from "../../support/until.ts";

const workers = useWorkers("roles.test.konverge.dev");
const namespace = "default";

const widgets = (reconcile: (context: ReconcileContext<Widget>) => Promise<void>): Controller =>
  defineController({ name: "widgets", for: workers.Widgets, reconcile });
const make = (name: string) =>
  workers.client.create(workers.Widgets, { metadata: { namespace, name }, spec: {} });
const holder = async () => {
  const { items } = await workers.client.list(Lease, { namespace });
  return items.find(({ metadata }) => metadata.name === `${workers.queues.prefix}-widgets`)?.spec
    ?.holderIdentity;
};
const leads = /^konverge_leader_election_master_status\{[^}]*name="widgets"[^}]*\} 1$/m;

test("watch only enqueues requests, work only runs handlers", async () => {
  const ran = new Set<string>();
  const work = await workers.start(
    [widgets(async ({ object }) => void ran.add(object.metadata.name))],
    { role: "work" },
  );
  const watch = await workers.start(
    [
      widgets(async () => {
        throw new Error("a watcher runs no handler");
      }),
    ],
    { role: "watch" },
  );
  const names = Array.from({ length: 20 }, (_, n) => `w-${n}`);
  await Promise.all(names.map(make));
  await until("every object was reconciled", () => ran.size === names.length);

  expect(await holder()).toBe(watch.workerId);
  expect([work.ready, watch.ready]).toEqual([true, true]);
  expect(await watch.metrics()).toMatch(leads);
  const counted = await work.metrics();
  expect(counted).not.toMatch(leads);
  expect(counted).not.toMatch(/konverge_watch_interruptions_total\{/);
  expect(watch.lines.filter(({ message }) => message === "reconcile failed")).toEqual([]);
  const registry = createControllerRegistry({
    redis: workers.queues.target,
    prefix: workers.queues.prefix,
    cluster: "default",
  });
  const listed = await registry.listWorkers();
  await registry.close();
  expect(listed.map(({ workerId, role }) => ({ workerId, role }))).toEqual(
    expect.arrayContaining([
      { workerId: work.workerId, role: "work" },
      { workerId: watch.workerId, role: "watch" },
    ]),
  );
});

test("a worker that never leads lists the reconciled kind from a cache that the first list starts", async () => {
  const seen = new Map<string, number>();
  await workers.start([widgets(async () => undefined)], { role: "watch" });
  await workers.start(
    [
      widgets(async ({ object, kube }) => {
        const all = await kube.list(workers.Widgets);
        seen.set(object.metadata.name, all.length);
      }),
    ],
    { role: "work" },
  );
  const before = workers.calls().length;
  await Promise.all(Array.from({ length: 20 }, (_, n) => make(`l-${n}`)));
  await until("every object was reconciled", () => seen.size === 20);
  const lists = workers
    .calls()
    .slice(before)
    .filter((call) => call.startsWith("list ") && call.includes("/widgets"));
  expect(lists).toHaveLength(1);
});
