import assert from "node:assert/strict";
import { defined } from "@konverge/core";
import {
  conditions,
  defineController,
  defineResource,
  type Controller,
  type Middleware,
  type Resource,
} from "@konverge/engine";
import { setControllerReference } from "@konverge/kube";
import { ConfigMap, Deployment, Event, Job, Namespace, Pod } from "@konverge/kube/kinds";
import type { Config } from "@konverge/worker";
import { complete, defineWorkflow, type AnyWorkflow } from "@konverge/workflow";
import { expect, test, type TestContext } from "vitest";
import { z } from "zod";
import {
  startTestCluster,
  testWorkflow,
  type TestClusterOptions,
} from "../../../apps/cli/src/testing/index.ts";
import { blockOf, functionOf, importText } from "./load-block.ts";

const GROUP = { group: "docs.konverge.dev", version: "v1" };
const Thing = defineResource({
  ...GROUP,
  kind: "Thing",
  spec: z.object({ n: z.int().optional() }),
  status: z.object({
    run: z.string(),
    answer: z.boolean(),
    observedGeneration: z.int(),
    conditions,
  }),
});
const KUBECONFIG = process.env["KONVERGE_TEST_KUBECONFIG"];

/** The embedded API server knows one schema per kind. */
function realServer(context: TestContext): NonNullable<TestClusterOptions["server"]> {
  if (KUBECONFIG === undefined) context.skip("no kube-apiserver");
  return { kubeconfig: KUBECONFIG ?? "" };
}

test("docs/configuration.md: a rate for each cluster", async () => {
  const run = await functionOf<Config>(
    blockOf("docs/configuration.md ts 1"),
    ["nodePool"],
    "exported",
  );
  const nodePool = defineController({ name: "x", for: Thing, reconcile: async () => undefined });
  const { clusters } = await run({ nodePool });
  expect(clusters).toMatchObject({
    default: { rate: 200, burst: 400 },
    old: { kubeconfig: "/etc/konverge/old.kubeconfig", rate: expect.any(Number) as number },
  });
  expect(Number((clusters as Record<string, { rate: number }>)["old"]?.rate)).toBeLessThan(200);
});

test("docs/outcomes.md: the finalizer keeps an object until its bucket is removed", async () => {
  const calls: string[] = [];
  const provider = {
    ensure: async () => void calls.push("ensure"),
    remove: async () => void calls.push("remove"),
  };
  const names = ["defineController", "Bucket", "provider"];
  const run = await functionOf<Controller>(blockOf("docs/outcomes.md ts 1"), names, "bucket");
  const bucket = await run({ defineController, Bucket: Thing, provider });
  await using k = await startTestCluster({ controllers: [bucket] });
  const thing = await k.reconciled(await k.apply(Thing, { metadata: { name: "a" }, spec: {} }));
  expect(thing.metadata.finalizers).toHaveLength(1);
  expect(calls).not.toContain("remove");
  await k.delete(thing);
  await k.gone(thing);
  expect(calls.at(-1)).toBe("remove");
});

test("docs/outcomes.md: middleware times, tags and filters attempts", async () => {
  const tags: string[] = [];
  const trace = {
    getActiveSpan: () => ({ setAttribute: (_: string, tag: string) => void tags.push(tag) }),
  };
  const run = await functionOf<Middleware[]>(
    blockOf("docs/outcomes.md ts 2"),
    ["trace", "TENANT"],
    "[timing, tagging, ourTenantsOnly]",
  );
  const use = await run({ trace, TENANT: "ours" });
  const seen: string[] = [];
  const things = defineController({
    name: "things",
    for: Thing,
    reconcile: async ({ object }) => void seen.push(object.metadata.name),
  });
  await using k = await startTestCluster({ controllers: [things], use });
  const labels = { tenant: "ours" };
  await k.reconciled(await k.apply(Thing, { metadata: { name: "a", labels }, spec: {} }));
  const other = await k.apply(Thing, { metadata: { name: "b" }, spec: {} });
  await k.reconciled(other);
  expect(seen).toEqual(["a"]);
  expect((await k.attempts(other)).map(({ outcome }) => outcome)).toEqual(["awaitChange"]);
  expect(tags).toContain("default");
  expect(k.log.map(({ message }) => message)).toContain("handler timed");
});

test("docs/resources.md: the kind has defaults, lists by key, columns and an older version", async (context) => {
  const server = realServer(context);
  const { NodePool } = (await importText(blockOf("docs/resources.md ts 1").text)) as {
    NodePool: Resource<object>;
  };
  await using k = await startTestCluster({ server, resources: [NodePool] });
  const name = `docs-${Date.now()}`;
  const pool = await k.apply(NodePool, { metadata: { name }, spec: {} });
  expect(pool.spec).toEqual({ replicas: 1, zones: [], ports: [] });
  const twice = { zones: ["a", "a"] };
  await expect(k.apply(NodePool, { metadata: { name }, spec: twice })).rejects.toThrow("uplicate");
  const old = { ...NodePool, version: "v1beta1" };
  const seen = await k.client.get(old, { namespace: "default", name });
  expect(seen.spec).toEqual({ replicas: 1 });
  const [version] = NodePool.crd().spec["versions"] as { additionalPrinterColumns: object[] }[];
  expect(version?.additionalPrinterColumns).toMatchObject([
    { name: "Replicas", type: "integer" },
    { name: "Ready", type: "string" },
  ]);
  await k.delete(pool);
});

test.for(["embedded", "real"])(
  "docs/resources.md: the %s API server runs the rules in CEL",
  async (kind, context) => {
    const server = kind === "real" ? realServer(context) : undefined;
    const run = await functionOf<z.ZodObject>(blockOf("docs/resources.md ts 2"), [], "limits");
    const Limit = defineResource({ ...GROUP, kind: "Limit", spec: await run({}) });
    await using k = await startTestCluster({ ...defined({ server }), resources: [Limit] });
    const apply = (changes: object) =>
      k.apply(Limit, {
        metadata: { name: "docs-limit" },
        spec: { min: 1, max: 2, class: "a", phase: "live", ...changes },
      });
    const limit = await apply({});
    await expect(apply({ min: 3 })).rejects.toThrow("spec.min: Invalid value: min must not exceed");
    await expect(apply({ max: 200 })).rejects.toThrow("at most 100 apart, not 199");
    await expect(apply({ class: "b" })).rejects.toThrow("field is immutable");
    await expect(apply({ phase: "draft" })).rejects.toThrow("a live pool stays live");
    await k.delete(limit);
  },
);

test("docs/resources.md: a change of a watched kind enqueues the objects that its map returns", async () => {
  const { rollouts } = (await importText(blockOf("docs/resources.md ts 3").text)) as {
    rollouts: Controller;
  };
  const Certificate = defineResource({
    group: "cert-manager.io",
    version: "v1",
    kind: "Certificate",
    spec: z.object({ secretName: z.string() }),
  });
  await using k = await startTestCluster({ controllers: [rollouts], resources: [Certificate] });
  const template = {
    metadata: { labels: { app: "web" } },
    spec: { containers: [{ name: "app", image: "app:1" }] },
  };
  const web = await k.apply(Deployment, {
    metadata: { name: "web" },
    spec: { selector: { matchLabels: { app: "web" } }, template },
  });
  await k.apply(Certificate, {
    metadata: { name: "tls", labels: { app: "web" } },
    spec: { secretName: "web-tls" },
  });
  const named = await k.until("the annotation names the Secret", async () => {
    const { annotations = {} } = (await k.client.get(Deployment, web.metadata)).metadata;
    return annotations["example.com/secrets"] !== "" && annotations["example.com/secrets"];
  });
  expect(named).toBe("web-tls");
});

test("docs/scope-and-permissions.md: only labelled Deployments are reconciled, and counted by their scope", async () => {
  const { checksums } = (await importText(blockOf("docs/scope-and-permissions.md ts 1").text)) as {
    checksums: Controller;
  };
  await using k = await startTestCluster({ controllers: [checksums] });
  const spec = { containers: [{ name: "app", image: "app:1" }] };
  const app = { app: "web" };
  const template = { metadata: { labels: app }, spec };
  const deploymentOf = (name: string, labels: Record<string, string>) =>
    k.apply(Deployment, {
      metadata: { name, labels },
      spec: { selector: { matchLabels: app }, template },
    });
  await k.apply(Pod, { metadata: { name: "on-n1" }, spec: { ...spec, nodeName: "n1" } });
  const plain = await deploymentOf("plain", {});
  const chosen = await deploymentOf("chosen", { checksums: "yes" });
  const counts = await k.until("the annotation has the counts", async () => {
    const { annotations } = (await k.client.get(Deployment, chosen.metadata)).metadata;
    return annotations?.["example.com/counts"];
  });
  expect(counts).toBe("0 secrets, 1 pods on n1");
  expect(await k.attempts(plain)).toEqual([]);
});

test("docs/scope-and-permissions.md: a namespace is followed once it has the labels of the source", async () => {
  const { default: config } = (await importText(
    blockOf("docs/scope-and-permissions.md ts 2").text,
  )) as { default: Config };
  expect(config.clusters).toEqual({ default: { namespaces: { labels: "konverge=enabled" } } });
  await using k = await startTestCluster({ controllers: config.controllers });
  const template = {
    metadata: { labels: { app: "web" } },
    spec: { containers: [{ name: "app", image: "app:1" }] },
  };
  for (const name of ["followed", "other"]) {
    await k.client.create(Namespace, { metadata: { name, labels: { team: "shop" } } });
  }
  const [web, other] = await Promise.all(
    ["followed", "other"].map((namespace) =>
      k.apply(Deployment, {
        metadata: { namespace, name: "web" },
        spec: { selector: { matchLabels: { app: "web" } }, template },
      }),
    ),
  );
  await k.client.mutate(Namespace, { name: "followed" }, (draft) => {
    (draft.metadata.labels ??= {})["tier"] = "api";
  });
  await k.reconciled(web!);
  expect(await k.attempts(other!)).toEqual([]);
});

test("docs/resources.md: an owned kind starts the handler with the selected changes only", async () => {
  const { migrations } = (await importText(blockOf("docs/resources.md ts 4").text)) as {
    migrations: Controller;
  };
  const reasons: string[] = [];
  const counted: Controller = {
    ...migrations,
    reconcile: async ({ triggers }) => {
      reasons.push(...triggers.flatMap(({ reason = "" }) => reason));
    },
  };
  await using k = await startTestCluster({ controllers: [counted] });
  const template = {
    metadata: { labels: { app: "web" } },
    spec: { containers: [{ name: "app", image: "app:1" }] },
  };
  const web = await k.apply(Deployment, {
    metadata: { name: "web" },
    spec: { selector: { matchLabels: { app: "web" } }, template },
  });
  // Only a leader requests owners, and it has requested this one.
  await k.reconciled(web);
  const pod = { spec: { ...template.spec, restartPolicy: "Never" } };
  const job = { metadata: { namespace: "default", name: "migrate" }, spec: { template: pod } };
  setControllerReference(job, web);
  await k.client.create(Job, job);
  await k.until("the new Job counts", () => reasons.includes("Job migrate added"));
  await k.client.mutate(Job, job.metadata, (draft) => {
    draft.metadata.labels = { wanted: "no" };
  });
  await k.client.mutate(
    Job,
    job.metadata,
    (draft) => {
      draft.status = { active: 1 };
    },
    { subresource: "status" },
  );
  await k.until("the status counts", () => reasons.includes("Job migrate changed"));
  expect(reasons.filter((reason) => reason === "Job migrate changed")).toHaveLength(1);
});

test("docs/testing.md: a test of a workflow that waits for a Job", async () => {
  const migrate = defineWorkflow(
    "migrate",
    { version: 1, input: z.object({ name: z.string() }) },
    async (w, { name }) => {
      const containers = [{ name: "main", image: "migrate" }];
      const job = await w.step("start", (k) =>
        k.runJob({
          apiVersion: "batch/v1",
          kind: "Job",
          metadata: { namespace: "default", name: `migrate-${name}` },
          spec: { template: { spec: { containers, restartPolicy: "Never" } } },
        }),
      );
      await w.waitFor("end", complete(job));
    },
  );
  const tests: (() => Promise<void>)[] = [];
  const env = {
    test: (_: string, body: () => Promise<void>) => tests.push(body),
    assert,
    startTestCluster,
    testWorkflow,
    migrate,
    Job,
  };
  const run = await functionOf(blockOf("docs/testing.md ts 2"), Object.keys(env));
  await run(env);
  expect(tests).toHaveLength(1);
  await tests[0]?.();
});

test("docs/testing.md: a test of a controller that starts a workflow", async () => {
  const backup = defineWorkflow("backup", { version: 1 }, async (w) => await w.signal("approve"));
  const backups = defineController({
    name: "backups",
    for: Thing,
    async reconcile({ object, kube, startRun }) {
      const { id } = await startRun(backup as AnyWorkflow & { run: never }, undefined as never);
      await kube.mutateStatus(object, (draft) => {
        draft.status.run = id;
      });
    },
  });
  const tests: (() => Promise<void>)[] = [];
  const names = ["test", "startTestCluster", "backups", "backup", "DatabaseBackup", "shopBackup"];
  const run = await functionOf(blockOf("docs/testing.md ts 3"), names);
  await run({
    test: (_: string, body: () => Promise<void>) => tests.push(body),
    startTestCluster,
    backups,
    backup,
    DatabaseBackup: Thing,
    shopBackup: { metadata: { name: "shop" }, spec: {} },
  });
  expect(tests).toHaveLength(1);
  await tests[0]?.();
});

test("docs/kube-client.md: each call does what the page says", async () => {
  const labels = { app: "web" };
  const containers = [{ name: "app", image: "app:1" }];
  const Pool = defineResource({ ...GROUP, kind: "Pool", spec: z.object({ size: z.int() }) });
  await using k = await startTestCluster({ resources: [Pool] });
  const { kube } = k;
  const named = { type: Deployment, name: "web" };
  await k.apply(Deployment, {
    metadata: { name: "web" },
    spec: {
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: { containers } },
    },
  });
  const play = async <R>(number: number, returns: string, env: object = {}): Promise<R> => {
    const block = blockOf(PAGE_BLOCKS[number - 1] ?? "");
    const names = ["kube", "Deployment", "ConfigMap", "Pod", "pool"];
    const run = await functionOf<R>(block, names, returns);
    return await run({ kube, Deployment, ConfigMap, Pod, ...env });
  };
  expect(await play(1, "owned")).toEqual({
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name: "web", namespace: "default" },
    spec: { replicas: 3 },
  });
  await play(2, "undefined");
  const web = await kube.get(named);
  expect([web.spec?.replicas, web.metadata.labels]).toEqual([5, { tier: "front" }]);

  const pool = await k.apply(Pool, { metadata: { name: "blue" }, spec: { size: 2 } });
  const kinds: unknown[] = [];
  for (let n = 0; n < 2; n += 1) kinds.push(await play(3, "kind", { pool }));
  expect(kinds).toEqual(["created", "unchanged"]);
  const { data, metadata } = await kube.get(ConfigMap, "blue-settings");
  expect([data, metadata.ownerReferences?.[0]?.uid]).toEqual([{ size: "2" }, pool.metadata.uid]);
  const events = (await kube.list(Event)).filter(({ reason }) => reason === "SettingsWritten");
  expect(events).toMatchObject([{ message: "settings created" }]);

  await k.apply(Pod, { metadata: { name: "p", labels }, spec: { containers } });
  await k.apply(ConfigMap, { metadata: { name: "mine", labels } });
  const [planned, body] = await play<[{ spec: object }, object]>(4, "[planned, body]");
  expect(planned.spec).toMatchObject({ replicas: 2 });
  expect(body).toMatchObject({ gitVersion: expect.any(String) as string });
  expect((await kube.readScale(named)).spec?.replicas ?? 0).toBe(0);
  expect(await kube.find(ConfigMap, "mine")).toBeUndefined();
  expect(await kube.find(Pod, "p")).toBeUndefined();
});

const PAGE_BLOCKS = [
  "docs/kube-client.md ts 1",
  "docs/kube-client.md ts 2",
  "docs/kube-client.md ts 3",
  "docs/kube-client.md ts 4",
];
