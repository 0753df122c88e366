import { defineController, type Controller } from "@konverge/engine";
import type { KubeCalls } from "@konverge/kube";
import { ConfigMap } from "@konverge/kube/kinds";
import { createHistoryReader } from "@konverge/queue";
import { kubeconfigDirectory } from "@konverge/worker";
import { CoreV1Api } from "@kubernetes/client-node";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { until } from "../../support/until.ts";
import { captureSpans } from "../engine/trace-capture.ts";
import { useQueues } from "../queue/queue-harness.ts";
import {
  KubeconfigFolder,
  startFleetCluster,
  startFleetWorker,
  type FleetCluster,
} from "./fleet-harness.ts";

const queues = useQueues();
const namespace = "default";
let east: FleetCluster;
let west: FleetCluster;
beforeAll(async () => {
  [east, west] = await Promise.all([startFleetCluster(), startFleetCluster()]);
});
afterAll(async () => {
  await east[Symbol.asyncDispose]();
  await west[Symbol.asyncDispose]();
});

const start = ({ path }: KubeconfigFolder, controllers: readonly Controller[]) =>
  startFleetWorker(queues, { home: east, clusters: kubeconfigDirectory({ path }), controllers });

test("a handler writes to another cluster, recorded and traced there", async () => {
  const spans = captureSpans();
  onTestFinished(spans.stop);
  using folder = new KubeconfigFolder();
  folder.put("east", east.server.kubeconfig);
  folder.put("west", west.server.kubeconfig);
  const errors: unknown[] = [];
  const mirrorTo = defineController({
    name: "mirror",
    for: ConfigMap,
    clusters: { names: ["east"] },
    reconcile: async ({ object, kube }) => {
      const to = object.data?.["to"];
      if (to === undefined) return;
      const there = kube.on(to);
      const name = `${object.metadata.name}-copy`;
      try {
        await there.apply(ConfigMap, { metadata: { name }, data: { from: "east" } });
        await there.mutate(await there.get(ConfigMap, name), (draft) => {
          draft.data = { ...draft.data, changed: "yes" };
        });
        const copies = await there.list(ConfigMap);
        expect(copies.map(({ metadata }) => metadata.name)).toContain(name);
        expect(await kube.find(ConfigMap, name)).toBeUndefined();
        await there.create(ConfigMap, { name: "owned", ownedBy: object });
      } catch (error) {
        errors.push(error);
      }
    },
  });
  await using worker = await start(folder, [mirrorTo]);
  await east.client.create(ConfigMap, { metadata: { namespace, name: "m" }, data: { to: "west" } });
  const copy = await until("the copy has changed", async () => {
    const found = await west.client.list(ConfigMap, { namespace });
    return found.items.find(({ data }) => data?.["changed"] === "yes");
  });
  expect(copy).toMatchObject({ metadata: { name: "m-copy" }, data: { from: "east" } });
  await until("the handler has returned", () => errors.length > 0);
  expect(errors[0]).toMatchObject({ code: "invalid_owner" });

  const queue = queues.open({ controller: "mirror", cluster: "east" });
  const key = { controller: "mirror", cluster: "east", group: "", resource: "configmaps" };
  const records = await until("the attempt is recorded", async () => {
    const found = await queue.listAttempts({ ...key, namespace, name: "m" });
    return found.length > 0 && found;
  });
  const { writes } = JSON.parse(String(records[0]?.record)) as { readonly writes: object[] };
  expect(writes).toMatchObject([
    { cluster: "west", verb: "apply", name: "m-copy" },
    { cluster: "west", verb: "patch", name: "m-copy" },
  ]);
  const traced = await until("the attempt is traced", () => {
    const all = spans.ended();
    const attempt = all.find(({ attributes }) => attributes["konverge.name"] === "m");
    return attempt && all.filter(({ traceId }) => traceId === attempt.traceId);
  });
  const port = Number(new URL(west.server.url).port);
  expect(
    traced
      .filter(({ attributes }) => attributes["server.port"] === port)
      .map(({ name }) => name)
      .filter((name) => name.startsWith("PATCH")),
  ).toHaveLength(2);

  await east.client.create(ConfigMap, {
    metadata: { namespace, name: "u" },
    data: { to: "north" },
  });
  await until("the unknown cluster is rejected", () => errors.length > 1);
  expect(errors.at(-1)).toMatchObject({
    code: "invalid_request",
    message: expect.stringMatching(/"north" is not among the clusters .*: east, west/) as string,
  });
  expect(worker.ready).toBe(true);
});

test.each([
  ["get", (there, name) => there.get(ConfigMap, name)],
  ["mutate", (there, name) => there.mutate({ type: ConfigMap, name }, () => undefined)],
  ["api", (there, name) => there.api(CoreV1Api).readNamespacedConfigMap({ namespace, name })],
  [
    "raw",
    (there, name) =>
      there.raw({ method: "GET", path: `/api/v1/namespaces/${namespace}/configmaps/${name}` }),
  ],
] satisfies [string, (there: KubeCalls<"handler">, name: string) => Promise<unknown>][])(
  "a missing object of the same name in another cluster is retried (%s)",
  async (how, read) => {
    using folder = new KubeconfigFolder();
    folder.put("east", east.server.kubeconfig);
    folder.put("west", west.server.kubeconfig);
    const lost = `lost-${how}`;
    let attempts = 0;
    let isDone = false;
    const follower = defineController({
      name: "follower",
      for: ConfigMap,
      clusters: { names: ["east"] },
      reconcile: async ({ object, kube }) => {
        if (object.metadata.name !== lost) return;
        attempts += 1;
        await read(kube.on("west"), lost);
        isDone = true;
      },
    });
    await using worker = await start(folder, [follower]);
    await east.client.create(ConfigMap, { metadata: { namespace, name: lost } });
    await until("it is retried", () => attempts > 1);
    await west.client.create(ConfigMap, { metadata: { namespace, name: lost } });
    await until("the object is found", () => isDone);
    expect(worker.ready).toBe(true);
  },
);

test("P12: a kind marked as sensitive is sensitive in other clusters too", async () => {
  using folder = new KubeconfigFolder();
  folder.put("east", east.server.kubeconfig);
  folder.put("west", west.server.kubeconfig);
  const messages: string[] = [];
  const hidden = defineController({
    name: "hidden",
    for: { ...ConfigMap, sensitive: true },
    clusters: { names: ["east"] },
    reconcile: async ({ object, kube }) => {
      if (object.metadata.name !== "hidden") return;
      try {
        // The API server quotes the label in its error.
        const labels = { pin: "canary 4711" };
        await kube.on("west").raw({
          method: "POST",
          path: `/api/v1/namespaces/${namespace}/configmaps`,
          body: { metadata: { name: "hidden", labels } },
        });
      } catch (error) {
        messages.push(String(error));
        throw error;
      }
    },
  });
  await using worker = await start(folder, [hidden]);
  await east.client.create(ConfigMap, { metadata: { namespace, name: "hidden" } });
  const queue = queues.open({ controller: "hidden", cluster: "east" });
  const key = { controller: "hidden", cluster: "east", group: "", resource: "configmaps" };
  const records = await until("the attempt is recorded", async () => {
    const found = await queue.listAttempts({ ...key, namespace, name: "hidden" });
    return found.length > 0 && found;
  });
  expect(messages[0]).toMatch(/configmaps.* 422 Invalid \(metadata\.labels\)/);
  expect(JSON.stringify(records)).toContain("422 Invalid");
  expect(JSON.stringify([messages, records])).not.toContain("canary");
  expect(worker.ready).toBe(true);
});

test("a conflict in another cluster is in the contention report of that cluster", async () => {
  using folder = new KubeconfigFolder();
  folder.put("east", east.server.kubeconfig);
  folder.put("west", west.server.kubeconfig);
  const errors: unknown[] = [];
  const compete = defineController({
    name: "compete",
    for: ConfigMap,
    clusters: { names: ["east"] },
    reconcile: async ({ object, kube }) => {
      // A further attempt would take the field over, which is contention of another kind.
      if (object.metadata.name !== "contended" || errors.length > 0) return;
      const there = kube.on("west");
      const read = await there.get(ConfigMap, "contended");
      const other = west.client.scoped({ fieldManager: "other" });
      await other.mutate(ConfigMap, { namespace, name: "contended" }, (draft) => {
        draft.data = { size: "1" };
      });
      const patch = { data: { size: "2" } };
      await there.patch(read, patch, { type: "merge" }).catch((error: unknown) => {
        errors.push(error);
      });
    },
  });
  await west.client.create(ConfigMap, {
    metadata: { namespace, name: "contended" },
    data: { size: "0" },
  });
  await using worker = await start(folder, [compete]);
  await east.client.create(ConfigMap, { metadata: { namespace, name: "contended" } });
  const { target: redis, prefix } = queues;
  const [inWest, inEast] = ["west", "east"].map((cluster) => {
    const reader = createHistoryReader({ redis, prefix, cluster, onError: () => undefined });
    onTestFinished(() => reader.close());
    return reader;
  });
  const object = `configmaps/${namespace}/contended`;
  const contended = await until("the conflict is counted", async () => {
    const { contendedObjects } = await inWest!.contentionReport(1);
    return contendedObjects.find((each) => each.object === object);
  });
  expect(errors).toMatchObject([{ code: "kube_api", status: 409 }]);
  expect(contended.conflicts).toBe(1);
  expect(await inWest!.contention(object)).toMatchObject([
    { kind: "conflict", manager: "other", count: 1 },
  ]);
  const wasted = await until("the wasted write is counted", async () => {
    const found = await inWest!.wastedWrites();
    return found.length > 0 && found;
  });
  expect(wasted).toMatchObject([{ object, controller: "compete" }]);
  expect((await inEast!.contentionReport(1)).contendedObjects).toEqual([]);
  expect(await inEast!.contention(object)).toEqual([]);
  expect(worker.ready).toBe(true);
});

test("no write to another cluster makes the reconciled object an owner", async () => {
  using folder = new KubeconfigFolder();
  folder.put("east", east.server.kubeconfig);
  folder.put("west", west.server.kubeconfig);
  const codes = new Map<string, unknown>();
  const adopt = defineController({
    name: "adopt",
    for: ConfigMap,
    clusters: { names: ["east"] },
    reconcile: async ({ object, kube }) => {
      if (object.metadata.name !== "owner") return;
      const there = kube.on("west");
      const { name, uid = "" } = object.metadata;
      const owner = { apiVersion: "v1", kind: "ConfigMap", name, uid };
      const metadata = { name: "adopted", ownerReferences: [owner] };
      const existing = await there.get(ConfigMap, "existing");
      const tries: Readonly<Record<string, () => Promise<unknown>>> = {
        create: () => there.create(ConfigMap, { name: "adopted", ownedBy: object }),
        apply: () => there.apply(ConfigMap, { metadata }),
        change: () =>
          there.mutate(existing, (draft) => {
            draft.metadata.ownerReferences = [owner];
          }),
        createOrUpdate: () =>
          there.createOrUpdate(ConfigMap, "adopted", (draft) => {
            draft.metadata.ownerReferences = [owner];
          }),
        merge: () => there.patch(existing, { metadata }, { type: "merge" }),
        operation: () =>
          there.patch(
            existing,
            [{ op: "add", path: "/metadata/ownerReferences", value: [owner] }],
            { type: "json" },
          ),
        raw: () =>
          there.raw({
            method: "POST",
            path: `/api/v1/namespaces/${namespace}/configmaps`,
            body: { metadata },
          }),
        api: () =>
          there.api(CoreV1Api).createNamespacedConfigMap({ namespace, body: { metadata } }),
        label: () =>
          there.apply(ConfigMap, { metadata: { name: "existing", labels: { source: uid } } }),
      };
      for (const [what, run] of Object.entries(tries)) {
        const error: unknown = await run().catch((thrown: unknown) => thrown);
        codes.set(what, error instanceof Error ? (error as { code?: unknown }).code : "none");
      }
    },
  });
  await west.client.create(ConfigMap, { metadata: { namespace, name: "existing" } });
  await using worker = await start(folder, [adopt]);
  await east.client.create(ConfigMap, { metadata: { namespace, name: "owner" } });
  await until("the handler has returned", () => codes.size === 9);
  const { label, ...owners } = Object.fromEntries(codes);
  expect(label).toBe("none");
  expect([...new Set(Object.values(owners))]).toEqual(["invalid_owner"]);
  expect(worker.ready).toBe(true);
});
