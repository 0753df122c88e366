import { defineController, type Controller, type ReconcileContext } from "@konverge/engine";
import { createWorkQueue } from "@konverge/queue";
import { afterEach, expect, test } from "vitest";
import { ConfigMap } from "@konverge/kube/kinds";
import { useWorkers } from "./worker-harness.ts";
import { until } from "../../support/until.ts";

const workers = useWorkers("versions.test.konverge.dev");
const namespace = "default";
const opened = new Set<ReturnType<typeof createWorkQueue>>();
afterEach(async () => {
  await Promise.all([...opened].map((queue) => queue.close()));
  opened.clear();
});

const openQueue = () => {
  const { prefix, target } = workers.queues;
  const queue = createWorkQueue({
    redis: target,
    prefix,
    cluster: "default",
    controller: "things",
  });
  opened.add(queue);
  return queue;
};
const things = (
  type: Controller["for"],
  reconcile: (context: ReconcileContext) => Promise<void> = async () => undefined,
): Controller => defineController({ name: "things", for: type, reconcile });
const OTHERS = "controller versions differ between workers";

test("two versions with different kinds both log it, and no request ends as gone", async () => {
  const old = await workers.start([things(workers.Widgets)]);
  const young = await workers.start([things(ConfigMap)]);
  await until("the younger one says so", () =>
    young.lines.some(({ message }) => message === OTHERS),
  );
  expect(young.lines.find(({ message }) => message === OTHERS)?.fields).toMatchObject({
    controller: "things",
    workers: [old.workerId],
    kinds: ["ConfigMap v1", "Widget versions.test.konverge.dev/v1"],
  });
  await until("and the older one with its next heartbeat", () =>
    old.lines.some(({ message }) => message === OTHERS),
  );
  await old.stop();

  // An object of the old version's kind, without a worker of that version.
  const queue = openQueue();
  const { group, resource } = workers.Widgets;
  const name = "late";
  await workers.client.create(workers.Widgets, { metadata: { namespace, name }, spec: {} });
  const key = { controller: "things", cluster: "default", group, resource, namespace, name };
  const { id } = await queue.request(key, { kind: "http" }, { class: "interactive" });
  const record = await until("an attempt says why it waits", async () => {
    const [last] = await queue.listAttempts(key);
    return last?.record;
  });
  expect(JSON.parse(record)).toMatchObject({
    outcome: "retry",
    error: { code: "unknown_controller" },
    calls: { count: 0 },
  });
  expect((await queue.getRequest(id)).phase).not.toBe("finished");
  await young.stop();

  const ran: string[] = [];
  await workers.start([
    things(workers.Widgets, async ({ object }) => void ran.push(object.metadata.name)),
  ]);
  // It would be retried within half a minute; a user request ends the wait.
  await queue.request(key, { kind: "http" }, { class: "interactive" });
  await until("a worker of its version has it", () => ran.includes(name));
  await until("it is finished", async () => (await queue.getRequest(id)).phase === "finished");
});

test("equal workers log nothing", async () => {
  await workers.start([things(workers.Widgets)]);
  const second = await workers.start([things(workers.Widgets)]);
  const third = await workers.start([things(ConfigMap)]);
  await until("a difference is noticed", () =>
    third.lines.some(({ message }) => message === OTHERS),
  );
  expect(second.lines.filter(({ message }) => message === OTHERS)).toEqual([]);
});

test("an attempt for an owner does not see a just deleted child in a stale cache", async () => {
  const children = new Map<string, number>();
  const owner = defineController({
    name: "things",
    for: workers.Widgets,
    owns: [ConfigMap],
    reconcile: async ({ object, kube }) => {
      children.set(object.metadata.name, (await kube.list(ConfigMap, { ownedBy: object })).length);
    },
  });
  await workers.client.create(workers.Widgets, {
    metadata: { namespace, name: "owner" },
    spec: {},
  });
  const { metadata, apiVersion, kind } = await workers.client.get(workers.Widgets, {
    namespace,
    name: "owner",
  });
  const reference = { apiVersion, kind, name: "owner", uid: metadata.uid ?? "", controller: true };
  await workers.client.create(ConfigMap, {
    metadata: { namespace, name: "child", ownerReferences: [reference] },
  });
  const deaf = workers.server.inject({
    verbs: ["watch"],
    resources: ["configmaps"],
    userAgent: "konverge-worker/deaf",
    effect: { kind: "silentWatch", afterEvents: 0 },
  });
  try {
    await workers.start([owner], { role: "watch" });
    await workers.start([owner], { role: "work", version: "deaf" });
    await until("the child is seen", () => children.get("owner") === 1);
    await workers.client.delete(ConfigMap, { namespace, name: "child" });
    await until("its end is seen", () => children.get("owner") === 0);
    // Not from the cache, which never gets it.
    const lists = workers.calls().filter((call) => /^list .*default\/configmaps/.test(call));
    expect(lists).toHaveLength(1);
  } finally {
    deaf();
  }
});

test("repeats the last reconciles of another version after its last worker has stopped", async () => {
  const by = new Map<string, string>();
  const version = (name: string) =>
    defineController({
      name: "things",
      for: workers.Widgets,
      concurrency: name === "old" ? 1 : 2,
      reconcile: async ({ object }) => void by.set(object.metadata.name, name),
    });
  await workers.client.create(workers.Widgets, { metadata: { namespace, name: "a" }, spec: {} });
  const old = await workers.start([version("old")], { role: "work" });
  // Elected permanently, so that no later election enqueues anything.
  await workers.start([version("new")], { role: "watch" });
  await until("the old version has it", () => by.get("a") === "old");
  await workers.start([version("new")], { role: "work" });
  await old.stop();
  await until("the new version has it", () => by.get("a") === "new");
  expect([...by]).toEqual([["a", "new"]]);
});
