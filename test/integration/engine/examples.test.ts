import { readFileSync } from "node:fs";
import { rm, writeFile } from "node:fs/promises";
import { type ApiObject, type ResourceType } from "@konverge/core";
import type { Config } from "@konverge/worker";
import type { Controller } from "@konverge/engine";
import { ignoreNotFound, isAlreadyExists, isServed, type NamespacedName } from "@konverge/kube";
import { afterAll, afterEach, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { Backup } from "../../../apps/examples/src/backup-resource.ts";
import { backups, LAST_BACKUP, VAULT } from "../../../apps/examples/src/backup.ts";
import { autoscaler } from "../../../apps/examples/src/autoscaler.ts";
import { ConfigMap } from "@konverge/kube/kinds";
import { nodePool } from "../../../apps/examples/src/node-pool.ts";
import { Autoscaler, Machine, NodePool } from "../../../apps/examples/src/resources.ts";
import { namespace, useEngines, type StartedEngine } from "./engine-harness.ts";
import { testServers } from "../kube/kube-servers.ts";
import { until } from "../../support/until.ts";

const cluster = (kind: string, resource: string, group: string): ResourceType => ({
  group,
  version: "v1",
  kind,
  resource,
  scope: "Cluster",
});
const CRD = cluster(
  "CustomResourceDefinition",
  "customresourcedefinitions",
  "apiextensions.k8s.io",
);
const NAMESPACE = cluster("Namespace", "namespaces", "");
const KINDS: readonly (ResourceType & { crd(): ApiObject })[] = [
  Backup,
  NodePool,
  Autoscaler,
  Machine,
];

/** The controller of README.md with its kinds, in a configuration. */
async function loadReadme(): Promise<Config> {
  const [, block = ""] =
    /```ts\n(const nodePool = .*?)```/s.exec(readFileSync("README.md", "utf8")) ?? [];
  const file = new URL(`.readme-${process.pid}-${Date.now()}.ts`, import.meta.url);
  const kinds = new URL("../../../apps/examples/src/resources.ts", import.meta.url);
  await writeFile(
    file,
    `import { defineConfig, defineController } from "konverge";
import { Machine, NodePool } from ${JSON.stringify(kinds.pathname)};

${block}
export default defineConfig({ controllers: [nodePool] });\n`,
  );
  onTestFinished(() => rm(file));
  return ((await import(file.href)) as { readonly default: Config }).default;
}

describe.each(testServers())("the examples on $name", (target) => {
  const harness = useEngines(target, "examples.test.konverge.dev");
  const find = <T extends ApiObject>(type: ResourceType<T>, name: string, inside = namespace) =>
    harness.client.get(type, { namespace: inside, name }).catch(ignoreNotFound);
  const copyOf = (name: string) => find(ConfigMap, `${namespace}.${name}`, VAULT);
  const started: StartedEngine[] = [];
  const startController = async (controller: Controller) => {
    const engine = await harness.startController(controller);
    started.push(engine);
    return engine;
  };
  const maps: string[] = [];
  const makeMap = (name: string, data: Record<string, string>) => {
    maps.push(name);
    return harness.client.create(ConfigMap, { metadata: { namespace, name }, data });
  };
  const makeBackup = (name: string, spec: { readonly source: string; retentionDays?: number }) =>
    harness.client.create(Backup, { metadata: { namespace, name }, spec });
  const phaseOf = async (name: string) => (await find(Backup, name))?.status?.phase;
  const reach = (name: string, phase: string) =>
    until(`${name} is ${phase}`, async () => (await phaseOf(name)) === phase);

  beforeAll(async () => {
    const orThere = (error: unknown) => {
      if (!isAlreadyExists(error)) throw error;
    };
    for (const kind of KINDS) await harness.client.create(CRD, kind.crd()).catch(orThere);
    await harness.client.create(NAMESPACE, { metadata: { name: VAULT } }).catch(orThere);
    for (const kind of KINDS) {
      await until(`${kind.kind} is served`, () => isServed(harness.client, kind));
    }
  });
  // A real API server without controllers has no garbage collection.
  afterEach(async () => {
    await Promise.all(started.map(({ engine }) => engine.kill()));
    for (const kind of [...KINDS, ConfigMap]) {
      for (const inside of [namespace, VAULT]) {
        const { items } = await harness.client.list(kind, { namespace: inside });
        for (const { metadata } of items) {
          // Other tests use the same namespace.
          if (kind === ConfigMap && inside === namespace && !maps.includes(metadata.name)) continue;
          const name: NamespacedName = { namespace: inside, name: metadata.name };
          if (metadata.finalizers !== undefined) {
            await harness.client.mutate(kind, name, (draft) => {
              delete draft.metadata.finalizers;
            });
          }
          await harness.client.delete(kind, name).catch(ignoreNotFound);
        }
      }
    }
  });
  afterAll(async () => {
    for (const { resource, group } of KINDS) {
      await harness.client.delete(CRD, { name: `${resource}.${group}` }).catch(ignoreNotFound);
    }
  });

  const verbsOf = async ({ records }: StartedEngine, name: string) =>
    (await records(name))
      .toReversed()
      .map(({ parsed }) =>
        (parsed["writes"] as { verb: string; subresource?: string }[]).map(
          ({ verb, subresource = "" }) => `${verb} ${subresource}`.trim(),
        ),
      );

  test("Backup: gets defaults from the API server, creates the copy, patches the source, writes the status", async () => {
    const engine = await startController(backups);
    await makeMap("settings", { color: "blue" });
    const made = await makeBackup("nightly", { source: "settings" });
    expect(made.spec).toEqual({ source: "settings", retentionDays: 30 });
    await reach("nightly", "Stored");
    expect((await copyOf("nightly"))?.data).toEqual({ color: "blue" });
    expect(await find(ConfigMap, "settings")).toMatchObject({
      data: { color: "blue" },
      metadata: { annotations: { [LAST_BACKUP]: "nightly" } },
    });
    expect(await find(Backup, "nightly")).toMatchObject({
      metadata: { finalizers: ["konverge.dev/backup"] },
      status: {
        storedFrom: "settings",
        observedGeneration: 1,
        conditions: [{ type: "Ready", status: "True", reason: "Stored", observedGeneration: 1 }],
      },
    });
    const first = await until("it is recorded", async () => (await verbsOf(engine, "nightly"))[0]);
    expect(first).toEqual(["patch", "create", "patch", "patch status"]);
    expect(await engine.queue.getKey(engine.key("nightly"))).toMatchObject({ failures: 0 });
  });

  test("Backup: replaces the whole copy for another source, including foreign changes", async () => {
    const engine = await startController(backups);
    await makeMap("one", { a: "1" });
    await makeMap("two", { b: "2" });
    await makeBackup("moved", { source: "one" });
    await reach("moved", "Stored");
    const copy = { namespace: VAULT, name: `${namespace}.moved` };
    await harness.client.mutate(ConfigMap, copy, (draft) => {
      draft.data = { ...draft.data, odd: "one" };
    });
    await harness.client.mutate(Backup, { namespace, name: "moved" }, (draft) => {
      draft.spec.source = "two";
    });
    await until("the copy is of the other", async () => (await copyOf("moved"))?.data?.["b"]);
    expect((await copyOf("moved"))?.data).toEqual({ b: "2" });
    await until("it is reported", async () => {
      return (await find(Backup, "moved"))?.status?.storedFrom === "two";
    });
    await until("it is recorded", async () =>
      (await verbsOf(engine, "moved")).some((verbs) => verbs[0] === "update"),
    );
  });

  test("Backup: waits for a missing source, and expires on time", async () => {
    await startController(backups);
    await makeBackup("early", { source: "late", retentionDays: 0.000_01 });
    await reach("early", "Pending");
    await makeMap("late", { c: "3" });
    // A user request does not wait for the next check.
    await harness.client.mutate(Backup, { namespace, name: "early" }, (draft) => {
      draft.metadata.annotations = { "konverge.dev/requested-at": new Date().toISOString() };
    });
    await reach("early", "Expired");
    expect(await copyOf("early")).toBeUndefined();
    expect((await find(Backup, "early"))?.status).toMatchObject({
      storedFrom: "late",
      conditions: [{ type: "Ready", status: "False", reason: "Expired" }],
    });
  });

  test("Backup: stays until its copy is deleted", async () => {
    await startController(backups);
    await makeMap("kept", { d: "4" });
    await makeBackup("leaving", { source: "kept" });
    await reach("leaving", "Stored");
    expect(await copyOf("leaving")).toBeDefined();
    await harness.client.delete(Backup, { namespace, name: "leaving" });
    await until("it is gone", async () => (await find(Backup, "leaving")) === undefined);
    expect(await copyOf("leaving")).toBeUndefined();
    expect((await find(ConfigMap, "kept"))?.data).toEqual({ d: "4" });
  });

  test("NodePool and Autoscaler: turn load into replicas and replicas into machines, and replace a lost machine", async () => {
    await startController(nodePool);
    await startController(autoscaler);
    await makeMap("load", { blue: "25" });
    const pool = await harness.client.create(NodePool, { metadata: { namespace, name: "blue" } });
    expect(pool.spec).toEqual({ replicas: 1 });
    await harness.client.create(Autoscaler, {
      metadata: { namespace, name: "blue" },
      spec: { poolRef: "blue", max: 10, targetLoad: 10 },
    });
    const machines = async () => {
      const { items } = await harness.client.list(Machine, { namespace });
      return items.map(({ metadata }) => metadata.name).toSorted();
    };
    const three = ["blue-0", "blue-1", "blue-2"];
    await until("three machines", async () => (await machines()).join() === three.join());
    await until("the status says so", async () => {
      return (await find(NodePool, "blue"))?.status?.machines === 3;
    });
    const [first = ""] = three;
    const before = await find(Machine, first);
    expect(before?.metadata.ownerReferences).toMatchObject([{ kind: "NodePool", name: "blue" }]);
    await harness.client.delete(Machine, { namespace, name: first });
    await until("it is back", async () => {
      const uid = (await find(Machine, first))?.metadata.uid;
      return uid !== undefined && uid !== before?.metadata.uid;
    });
    expect(await find(Autoscaler, "blue")).toMatchObject({ status: { desiredReplicas: 3 } });
  });

  test("README.md: keeps the machines of the spec when scaled up and down, and recreates a deleted one", async () => {
    const { controllers } = await loadReadme();
    expect(controllers.map(({ name }) => name)).toEqual(["node-pool"]);
    for (const controller of controllers) await startController(controller);
    await harness.client.create(NodePool, {
      metadata: { namespace, name: "green" },
      spec: { replicas: 3 },
    });
    const third = () => find(Machine, "green-2");
    await until("three machines", async () => (await third()) !== undefined);
    const first = await find(Machine, "green-0");
    await harness.client.delete(Machine, { namespace, name: "green-0" });
    await until("it is back", async () => {
      const uid = (await find(Machine, "green-0"))?.metadata.uid;
      return uid !== undefined && uid !== first?.metadata.uid;
    });
    const scale = async (replicas: number) => {
      await harness.client.mutate(NodePool, { namespace, name: "green" }, (draft) => {
        draft.spec.replicas = replicas;
      });
      await until(`there are ${replicas} machines, and the status says so`, async () => {
        const { items } = await harness.client.list(Machine, { namespace });
        const names = items
          .map(({ metadata }) => metadata.name)
          .filter((name) => name.startsWith("green-"));
        const pool = await find(NodePool, "green");
        return names.length === replicas && pool?.status?.machines === replicas;
      });
    };
    for (const replicas of [1, 2, 0, 3]) await scale(replicas);
  });
});
