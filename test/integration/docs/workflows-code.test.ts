import { TerminalError, type ApiObject } from "@konverge/core";
import { defineController, defineResource, type Controller } from "@konverge/engine";
import { Deployment, Job, Namespace, Service } from "@konverge/kube/kinds";
import { defineConfig, type Config } from "@konverge/worker";
import {
  defineSchedule,
  defineWorkflow,
  StepFailedError,
  type AnyWorkflow,
  type Workflow,
} from "@konverge/workflow";
import { Redis } from "ioredis";
import { expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import {
  replay,
  startTestCluster,
  testWorkflow,
  type TestCluster,
} from "../../../apps/cli/src/testing/index.ts";
import { blockOf, functionOf } from "./load-block.ts";

const GROUP = { group: "docs.konverge.dev", version: "v1" };
const spec = { name: "web" };
const smokeTest = defineWorkflow("smoke-test", { version: 1 }, async (w) => {
  await w.step("probe", () => "ok");
});

async function loadRollout() {
  const log: string[] = [];
  const run = await functionOf<Workflow<{ name: string }>>(
    blockOf("docs/workflow-steps.md ts 1"),
    ["RolloutSpec", "Approval", "createPool", "deletePool", "smokeTest"],
    "rollout",
  );
  const rollout = await run({
    RolloutSpec: z.object({ name: z.string() }),
    Approval: z.object({ by: z.string() }),
    createPool: ({ name }: { name: string }) => name,
    deletePool: (pool: string) => void log.push(`delete ${pool}`),
    smokeTest,
  });
  return { rollout, log };
}

test("docs/workflow-steps.md: the rollout waits, is approved, and is undone without an approval", async () => {
  const { rollout, log } = await loadRollout();
  const approved = testWorkflow(rollout, spec, { children: [smokeTest] });
  expect(await approved.advance("29m")).toMatchObject({ status: "waiting" });
  await approved.advance("1m");
  expect(await approved.signal("approve", { by: "ann" })).toMatchObject({ status: "done" });
  expect(log).toEqual([]);
  const ignored = testWorkflow(rollout, spec, { children: [smokeTest] });
  const run = await ignored.advance("25h");
  expect(run).toMatchObject({ status: "failed", error: { message: "not approved within a day" } });
  expect(log).toEqual(["delete web"]);
});

test("docs/workflow-operations.md: a configuration with workflows only", async () => {
  const { rollout } = await loadRollout();
  const names = ["defineConfig", "rollout", "smokeTest"];
  const run = await functionOf<Config>(
    blockOf("docs/workflow-operations.md ts 1"),
    names,
    "exported",
  );
  const { workflows } = await run({ defineConfig, rollout, smokeTest });
  expect(workflows).toEqual([rollout, smokeTest]);
});

test("docs/workflow-operations.md: code starts a run and sends it a signal", async () => {
  const { rollout } = await loadRollout();
  // A database of its own, because the block has no prefix.
  const url = new URL(process.env["REDIS_URL"] ?? "");
  url.pathname = "/9";
  const redis = new Redis(url.href);
  onTestFinished(async () => {
    await redis.flushdb();
    redis.disconnect();
  });
  const run = await functionOf<{ id: string; workflows: import("@konverge/workflow").Workflows }>(
    blockOf("docs/workflow-operations.md ts 2"),
    ["url", "log", "rollout", "spec"],
    "{ id, workflows }",
  );
  const { id, workflows } = await run({ url: url.href, log: console, rollout, spec });
  onTestFinished(() => workflows.close());
  const started = await workflows.get({ workflow: "rollout", id });
  expect(started).toMatchObject({ status: "queued", key: "rollout:web", input: spec });
  const [signal] = await workflows.unconsumedSignals({ workflow: "rollout", id });
  expect(signal).toMatchObject({ name: "approve", by: "ann" });
});

test("docs/workflow-kubernetes.md: a controller starts one run per generation, also without Redis's memory of it", async () => {
  const NodePool = defineResource({
    ...GROUP,
    kind: "RolloutPool",
    spec: z.object({ replicas: z.int() }),
    status: z.object({ rollout: z.string(), rolledOut: z.int() }),
  });
  const sizes: number[] = [];
  const rollout = defineWorkflow(
    "pool-rollout",
    { version: 1 },
    async (w, { replicas }: { replicas: number }) => {
      await w.step("resize", () => void sizes.push(replicas));
    },
  );
  const run = await functionOf<Controller>(
    blockOf("docs/workflow-kubernetes.md ts 4"),
    ["defineController", "NodePool", "rollout"],
    "pools",
  );
  const pools = await run({ defineController, NodePool, rollout });
  await using k = await startTestCluster({ controllers: [pools], workflows: [rollout] });
  const resize = async (replicas: number) => {
    const pool = await k.apply(NodePool, { metadata: { name: "web" }, spec: { replicas } });
    await k.until(`${replicas} are rolled out`, async () => {
      const { metadata, status } = await k.client.get(NodePool, pool.metadata);
      return status?.rollout === "done" && status.rolledOut === metadata.generation;
    });
  };
  await resize(1);
  await resize(2);
  expect(sizes).toEqual([1, 2]);
});

test("docs/workflow-operations.md: a schedule of a workflow", async () => {
  const backup = defineWorkflow("backup", { version: 1 }, async (_, input: { target: string }) => {
    return input.target;
  });
  const run = await functionOf<Config>(
    blockOf("docs/workflow-operations.md ts 3"),
    ["backup"],
    "exported",
  );
  const { schedules } = await run({ backup });
  expect(schedules).toMatchObject([{ name: "nightly", input: { target: "s3://backups" } }]);
});

test.each([
  { event: "abort", run: { status: "failed", error: { message: "stopped by ann" } } },
  {
    event: "deadline",
    run: { status: "failed", error: { message: "the copy took longer than 4 h" } },
  },
  { event: "end", run: { status: "done", result: "copied" } },
])("docs/workflow-steps.md: a race of a long copy ends by $event", async ({ event, run }) => {
  const deleted: string[] = [];
  const names = ["w", "copyBucket", "deleteCopy", "Abort", "TerminalError"];
  const body = await functionOf(blockOf("docs/workflow-steps.md ts 6"), names);
  const long = defineWorkflow("long", { version: 1 }, async (w) => {
    const copyBucket = () => "copied";
    const deleteCopy = () => void deleted.push("copy");
    const Abort = z.object({ user: z.string() });
    return (await body({ w, copyBucket, deleteCopy, Abort, TerminalError })) as string;
  });
  const t = testWorkflow(long, undefined);
  t.holdStep("copy");
  await t.settle();
  if (event === "abort") await t.signal("abort", { user: "ann" });
  else if (event === "deadline") await t.advance("4h");
  else await t.releaseStep("copy");
  expect(await t.settle()).toMatchObject(run);
  expect(deleted).toEqual(run.status === "done" ? [] : ["copy"]);
});

test("docs/workflow-steps.md: tries of a step have one idempotency key, and their delay", async () => {
  const keys: string[] = [];
  const body = await functionOf<string>(
    blockOf("docs/workflow-steps.md ts 2"),
    ["w", "bank", "spec"],
    "receipt",
  );
  interface Sent {
    readonly idempotencyKey: string;
    readonly signal: AbortSignal;
  }
  const bank = {
    charge: (amount: number, { idempotencyKey, signal }: Sent) => {
      signal.throwIfAborted();
      if (keys.push(idempotencyKey) < 3) throw new Error("busy");
      return `paid ${amount}`;
    },
  };
  const pay = defineWorkflow("pay", { version: 1 }, async (w) =>
    body({ w, bank, spec: { amount: 7 } }),
  );
  const t = testWorkflow(pay, undefined);
  expect(await t.advance("29s")).toMatchObject({ status: "waiting" });
  expect(keys).toHaveLength(1);
  expect(await t.advance("31s")).toMatchObject({ status: "done", result: "paid 7" });
  expect(new Set(keys).size).toBe(1);
});

test("docs/workflow-steps.md: videos are encoded by spread steps", async () => {
  const body = await functionOf(
    blockOf("docs/workflow-steps.md ts 3"),
    ["w", "spec", "encode"],
    "outcomes.map(({ value }) => value)",
  );
  const encode = (video: string) => `${video}.av1`;
  const library = defineWorkflow("library", { version: 1 }, async (w) => {
    return (await body({ w, spec: { videos: ["a", "b"] }, encode })) as never;
  });
  const run = await testWorkflow(library, undefined).settle();
  expect(run).toMatchObject({ status: "done", result: ["a.av1", "b.av1"] });
});

test("docs/workflow-steps.md: a failed step is caught, and a TerminalError fails the run", async () => {
  const names = ["w", "mail", "tickets", "spec", "limit", "StepFailedError", "TerminalError"];
  const body = await functionOf(blockOf("docs/workflow-steps.md ts 4"), names);
  const opened: string[] = [];
  const env = {
    mail: {
      send: () => {
        throw new Error("no such user");
      },
    },
    tickets: { open: (text: string) => void opened.push(text) },
    limit: 100,
    StepFailedError,
    TerminalError,
  };
  const notify = defineWorkflow("notify", { version: 1 }, async (w, amount: number) => {
    await body({ w, ...env, spec: { user: "ann", amount } });
  });
  const t = testWorkflow(notify, 7);
  expect(await t.advance("1h")).toMatchObject({ status: "done" });
  expect(t.bodies).toEqual(["notify", "notify", "notify", "open a ticket"]);
  expect(opened).toEqual([expect.stringContaining("no such user")]);
  const failed = await testWorkflow(notify, 101).advance("1h");
  expect(failed).toMatchObject({ status: "failed", error: { message: "more than 100" } });
});

test("docs/workflow-steps.md: branches run at the same time, and items with tolerated failures", async () => {
  const createDatabase = defineWorkflow("create-database", { version: 1 }, async (w) => {
    await w.signal("created");
    return "db-1";
  });
  const body = await functionOf(
    blockOf("docs/workflow-steps.md ts 5"),
    ["w", "build", "createDatabase", "install", "spec"],
    "{ image, database, outcomes: outcomes.map(({ status }) => status) }",
  );
  const install = (host: string) => {
    if (host === "b") throw new TerminalError("full");
  };
  const provision = defineWorkflow("provision", { version: 1 }, async (w) => {
    const hostsSpec = { hosts: ["a", "b", "c"] };
    return (await body({
      w,
      build: () => "web:1",
      createDatabase,
      install,
      spec: hostsSpec,
    })) as never;
  });
  const t = testWorkflow(provision, undefined, { children: [createDatabase] });
  expect(await t.settle()).toMatchObject({ status: "waiting" });
  expect(t.bodies).toEqual(["build"]);
  await t.child("database").signal("created");
  const outcomes = ["fulfilled", "rejected", "fulfilled"];
  const result = { image: "web:1", database: "db-1", outcomes };
  expect(await t.run()).toMatchObject({ status: "done", result });
});

test("docs/workflow-steps.md: a run copies in a child, starts a scan, and undoes the copy when it fails", async () => {
  const deleted: unknown[] = [];
  const copyBucket = defineWorkflow("copy-bucket", { version: 1 }, async (w, from: string) =>
    w.step("copy", () => ({ name: `${from}-copy` })),
  );
  const scanBucket = defineWorkflow(
    "scan-bucket",
    { version: 1 },
    async (w, { bucket, reportTo }: { bucket: string; reportTo: string }) => {
      const { depth } = await w.signal<{ depth: number }>("begin");
      const mover = { workflow: "mover", id: reportTo };
      await w.signalRun("report", mover, "report", `${bucket} to ${depth}`);
    },
  );
  const names = ["w", "copyBucket", "scanBucket", "deleteBucket", "spec"];
  const body = await functionOf(blockOf("docs/workflow-steps.md ts 7"), names, "report");
  const deleteBucket = (made: unknown) => void deleted.push(made);
  const mover = defineWorkflow("mover", { version: 1 }, async (w) => {
    const report = await body({ w, copyBucket, scanBucket, deleteBucket, spec: "photos" });
    throw new TerminalError(String(report));
  });
  const t = testWorkflow(mover, undefined, { children: [copyBucket, scanBucket] });
  expect(await t.settle()).toMatchObject({
    status: "failed",
    error: { message: "photos-copy to 2" },
  });
  expect(deleted).toEqual([{ name: "photos-copy" }]);
});

test("docs/workflow-kubernetes.md: verbs of a step are undone, and a mutate counts once", async () => {
  const Quota = defineResource({
    ...GROUP,
    kind: "Quota",
    spec: z.object({ hard: z.object({ pods: z.int() }) }),
  });
  await using k = await startTestCluster({ resources: [Quota] });
  const made = await k.apply(Quota, { metadata: { name: "q" }, spec: { hard: { pods: 1 } } });
  const body = await functionOf(blockOf("docs/workflow-kubernetes.md ts 1"), [
    "w",
    "namespace",
    "spec",
    "quota",
  ]);
  const { apiVersion, kind } = made;
  const quota = { apiVersion, kind, metadata: { name: "q", namespace: "default" } };
  const namespace = ({ name }: { name: string }) => ({
    apiVersion: "v1",
    kind: "Namespace",
    metadata: { name },
  });
  const provision = defineWorkflow("provision", { version: 1 }, async (w) => {
    await body({ w, namespace, spec: { name: "docs-tenant" }, quota });
    await w.signal("keep");
  });
  const t = testWorkflow(provision, undefined, { kube: k.client, replayEveryStep: true });
  expect(await t.settle()).toMatchObject({ status: "waiting" });
  expect((await k.client.get(Quota, made.metadata)).spec).toEqual({ hard: { pods: 2 } });
  const created = await k.client.get(Namespace, { name: "docs-tenant" });
  expect(await t.cancel()).toMatchObject({ status: "cancelled" });
  const left = await k.client.list(Namespace, {});
  const kept = left.items.find(({ metadata }) => metadata.uid === created.metadata.uid);
  expect(kept?.metadata.deletionTimestamp ?? "deleted").toBeTruthy();
});

const labels = { app: "web" };
const pod = { metadata: { labels }, spec: { containers: [{ name: "app", image: "app:1" }] } };
async function setStatus(k: TestCluster, object: ApiObject, status: object): Promise<void> {
  await k.kube.mutateStatus(object, (draft) => void Object.assign(draft.status, status));
}

test("docs/workflow-kubernetes.md: waits for objects end when the conditions hold", async () => {
  await using k = await startTestCluster({});
  const selector = { matchLabels: labels };
  const make = (name: string) =>
    k.apply(Deployment, { metadata: { name }, spec: { replicas: 1, selector, template: pod } });
  const [web, queue] = [await make("web"), await make("queue")];
  const job = await k.apply(Job, {
    metadata: { name: "job" },
    spec: { template: { spec: { ...pod.spec, restartPolicy: "Never" } } },
  });
  const svc = await k.apply(Service, {
    metadata: { name: "svc" },
    spec: { ports: [{ port: 80 }] },
  });
  const refOf = ({ apiVersion, kind }: ApiObject, name: string) => ({
    apiVersion,
    kind,
    namespace: "default",
    name,
  });
  const refs = {
    webRef: refOf(web, "web"),
    queueRef: refOf(queue, "queue"),
    jobRef: refOf(job, "job"),
    svcRef: refOf(svc, "svc"),
  };
  const body = await functionOf(
    blockOf("docs/workflow-kubernetes.md ts 2"),
    ["w", ...Object.keys(refs)],
    "{ index }",
  );
  const waiting = defineWorkflow("waiting", { version: 1 }, async (w) => {
    return (await body({ w, ...refs })) as { index: number };
  });
  const t = testWorkflow(waiting, undefined, { kube: k.client });
  expect(await t.settle()).toMatchObject({ status: "waiting" });
  const isReady = {
    observedGeneration: 1,
    replicas: 1,
    updatedReplicas: 1,
    readyReplicas: 1,
    availableReplicas: 1,
    conditions: [
      { type: "Available", status: "True" },
      { type: "Progressing", status: "True", reason: "NewReplicaSetAvailable" },
    ],
  };
  await setStatus(k, web, isReady);
  await setStatus(k, queue, isReady);
  expect(await t.settle()).toMatchObject({ status: "waiting" });
  expect((await t.steps()).has("up")).toBe(true);
  await k.delete(web);
  expect(await t.settle()).toMatchObject({ status: "waiting" });
  await setStatus(k, svc, { loadBalancer: { ingress: [{ ip: "192.0.2.1" }] } });
  expect(await t.settle()).toMatchObject({ status: "done", result: { index: 1 } });
});

test("docs/workflow-kubernetes.md: a workflow names the kinds of its steps", async () => {
  const Widget = defineResource({ ...GROUP, kind: "Widget", spec: z.object({}) });
  const block = blockOf("docs/workflow-kubernetes.md ts 3");
  const run = await functionOf<AnyWorkflow>(
    { ...block, text: `const defined = ${block.text}` },
    ["defineWorkflow", "Deployment", "Widget", "run"],
    "defined",
  );
  const defined = await run({ defineWorkflow, Deployment, Widget, run: async () => null });
  expect(defined.kinds).toEqual([Deployment, Widget]);
});

test("docs/workflow-testing.md: the example of testWorkflow passes", async () => {
  const { rollout } = await loadRollout();
  const names = ["testWorkflow", "rollout", "smokeTest", "expect"];
  const run = await functionOf(blockOf("docs/workflow-testing.md ts 1"), names);
  expect(await run({ testWorkflow, rollout, smokeTest, expect })).toBeUndefined();
});

test("docs/workflow-testing.md: a test of a schedule", async () => {
  const { rollout } = await loadRollout();
  const backup = defineWorkflow("backup", { version: 1 }, async (w) => w.signal("finish"));
  const how = { cron: "0 * * * *", workflow: backup, input: undefined };
  const hourlyBackup = defineSchedule("hourly", how);
  const names = ["testWorkflow", "rollout", "hourlyBackup", "expect"];
  const run = await functionOf(blockOf("docs/workflow-testing.md ts 2"), names);
  expect(await run({ testWorkflow, rollout, hourlyBackup, expect })).toBeUndefined();
});

test("docs/workflow-testing.md: a test that replays an exported run", async () => {
  const rollout = defineWorkflow("rollout", { version: 1 }, async (w) => await w.signal("approve"));
  const renamed = defineWorkflow(
    "rollout",
    { version: 1 },
    async (w) => await w.step("a", () => 1),
  );
  const t = testWorkflow(rollout, undefined);
  await t.signal("approve", "yes");
  const history = await t.history();
  const run = await functionOf(blockOf("docs/workflow-testing.md ts 3"), [
    "test",
    "replay",
    "rollout",
  ]);
  for (const [code, fits] of [
    [rollout, true],
    [renamed, false],
  ] as const) {
    const tests: (() => Promise<void>)[] = [];
    await run({
      test: (_: string, body: () => Promise<void>) => tests.push(body),
      replay: async (file: string, workflow: AnyWorkflow) => {
        expect(file).toBe("test/histories/r1.json");
        await replay(history, workflow);
      },
      rollout: code,
    });
    const replayed = await tests[0]?.().then(
      () => true,
      () => false,
    );
    expect(replayed).toBe(fits);
  }
});
