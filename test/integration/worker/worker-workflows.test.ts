import { defined } from "@konverge/core";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { defineConfig } from "@konverge/worker";
import { createControllerRegistry } from "@konverge/queue";
import { createApiServer } from "@konverge/apiserver";
import { defineWorkflow, openWorkflows, type AnyWorkflow } from "@konverge/workflow";
import { afterEach, expect, test } from "vitest";
import { ConfigMap } from "@konverge/kube/kinds";
import { hold } from "../queue/queue-harness.ts";
import { useWorkers } from "./worker-harness.ts";
import { until } from "../../support/until.ts";
import { ended, inStatus } from "../workflow/workflow-harness.ts";

const workers = useWorkers("runs.test.konverge.dev");
let cleanup = new AsyncDisposableStack();
// Before the hook of the workers, which kills them.
afterEach(async () => {
  await cleanup.disposeAsync();
  cleanup = new AsyncDisposableStack();
});

const start = (workflows: readonly AnyWorkflow[], role?: "watch" | "work", shards = 1) => {
  const { prefix } = workers.queues;
  const config = defineConfig({
    workflows,
    settings: { prefix },
    clusters: { default: { shards } },
  });
  return workers.start([], { config, ...defined({ role }) });
};
const openRuns = (shards = 1) => {
  const { prefix, target } = workers.queues;
  const runs = openWorkflows({ redis: target, prefix, shards });
  cleanup.defer(() => runs.close());
  return runs;
};

test("a worker without controllers executes the runs of its workflows, in the shards of its cluster", async () => {
  const double = defineWorkflow("double", { version: 1 }, async (w, n: number) => {
    return await w.step("double", () => n * 2);
  });
  const worker = await start([double], undefined, 3);
  expect(worker.ready).toBe(true);
  const runs = openRuns(3);
  const ids = await Promise.all(
    Array.from({ length: 9 }, async (_, n) => (await runs.start(double, n)).id),
  );
  const results = await Promise.all(ids.map((id) => ended(runs, double, id)));
  expect(results.map(({ result }) => result)).toEqual([0, 2, 4, 6, 8, 10, 12, 14, 16]);
  expect(worker.lines.filter(({ message }) => message === "workflow error")).toEqual([]);
});

test("P12: a kind that a workflow marks as sensitive is sensitive in calls that only name it", async () => {
  const name = "kept-secret";
  const object = { apiVersion: "v1", kind: "ConfigMap", namespace: "default", name };
  const kinds = [{ ...ConfigMap, sensitive: true }];
  const copy = defineWorkflow("copy-hidden", { version: 1, kinds }, async (w) => {
    await w.step("create", (k) =>
      k.create(ConfigMap, { metadata: { namespace: "default", name }, data: { pin: "canary" } }),
    );
    // The compiler rejects objects as results, so the type is hidden from it.
    return await w.step("read", (k) => k.get<never>(object));
  });
  await start([copy]);
  const runs = openRuns();
  const { id } = await runs.start(copy, undefined);
  await until("the run is blocked or has ended", async () => {
    const { status = "running" } = (await runs.get({ workflow: copy.name, id })) ?? {};
    return !["queued", "running"].includes(status);
  });
  const run = await runs.get({ workflow: copy.name, id });
  expect(JSON.stringify(run)).toContain("another sensitive kind");
  expect(JSON.stringify(run)).not.toContain("canary");
});

test("runs that were terminated or paused while they waited for a slot do not delay the next one", async () => {
  const body = hold();
  let isHeld = false;
  const holdSlot = async () => {
    isHeld = true;
    await body.wait();
  };
  const copy = defineWorkflow("copy", { version: 1 }, async (w, isHolder: boolean) => {
    await w.step("copy", async () => (isHolder ? await holdSlot() : undefined), { limit: "disk" });
  });
  const config = defineConfig({
    workflows: [copy],
    limits: { disk: { concurrency: 1 } },
    settings: { prefix: workers.queues.prefix },
  });
  await workers.start([], { config });
  const runs = openRuns();
  const startCopy = async (isHolder: boolean) => {
    const { id } = await runs.start(copy, isHolder);
    await until("it holds or waits for the slot", async () => {
      if (isHolder) return isHeld;
      const run = await runs.get({ workflow: "copy", id });
      return run?.waits?.[0]?.message?.includes("disk");
    });
    return id;
  };
  const holder = await startCopy(true);
  const away = await Promise.all(Array.from({ length: 60 }, () => startCopy(false)));
  const next = await startCopy(false);
  for (const [at, id] of away.entries()) {
    const ref = { workflow: "copy", id };
    const by = { by: "ann", reason: "full" };
    if (at % 2 === 0) await runs.terminate(ref, by);
    else await runs.pause(ref, by);
  }
  body.release();
  await ended(runs, copy, holder);
  // Each of the others would have 2 s to return.
  expect(await ended(runs, copy, next)).toMatchObject({ status: "done" });
});

test("the role watch takes no runs, the role work does", async () => {
  const who = defineWorkflow("who", { version: 1 }, async (w) => await w.step("who", () => "work"));
  const watching: AnyWorkflow = {
    ...who,
    run: async () => {
      throw new Error("a watcher runs no workflow");
    },
  };
  await start([watching], "watch");
  await start([who], "work");
  const runs = openRuns();
  const { id } = await runs.start(who, null);
  expect(await ended(runs, who, id)).toMatchObject({ status: "done", result: "work" });
});

test("workers announce their workflows; a start uses the highest running version, or else the last one", async () => {
  const roll = (version: number) => defineWorkflow("roll", { version }, async () => null);
  const newer = await start([roll(2)]);
  const older = await start([roll(1)]);
  const { prefix, target } = workers.queues;
  const registry = createControllerRegistry({ redis: target, prefix, cluster: "default" });
  cleanup.defer(() => registry.close());
  const listed = await registry.listWorkers();
  expect(new Map(listed.map(({ workerId, workflows }) => [workerId, workflows]))).toEqual(
    new Map([
      [newer.workerId, { roll: 2 }],
      [older.workerId, { roll: 1 }],
    ]),
  );
  expect(await registry.listWorkflows()).toEqual([{ name: "roll", version: 2 }]);
  await newer.stop();
  expect(await registry.listWorkflows()).toEqual([{ name: "roll", version: 1 }]);
  await older.stop();
  expect(await registry.listWorkflows()).toEqual([{ name: "roll", version: expect.any(Number) }]);
  expect(await registry.listClusters()).toEqual(["default"]);
});

test("a stop lets the running step finish and be recorded; the run continues in the next worker", async () => {
  const held = hold();
  const begun = hold();
  const bodies: string[] = [];
  const two = defineWorkflow("two", { version: 1 }, async (w) => {
    await w.step("one", async () => {
      bodies.push("one");
      begun.release();
      await held.wait();
    });
    await w.step("two", () => void bodies.push("two"));
  });
  const first = await start([two]);
  const runs = openRuns();
  const { id } = await runs.start(two, null);
  await begun.wait();
  const stopped = first.stop();
  expect(first.ready).toBe(false);
  held.release();
  await stopped;
  await start([two]);
  expect(await ended(runs, two, id)).toMatchObject({ status: "done" });
  expect(bodies).toEqual(["one", "two"]);
});

test("a kill aborts the step; another worker repeats it", async () => {
  const begun = hold();
  let tries = 0;
  const stubborn = defineWorkflow("stubborn", { version: 1 }, async (w) => {
    return await w.step("one", async ({ signal }) => {
      tries += 1;
      if (tries > 1) return tries;
      begun.release();
      return await new Promise<number>((_resolve, reject) => {
        signal.addEventListener("abort", () => reject(new Error("cut off")), { once: true });
      });
    });
  });
  const first = await start([stubborn]);
  const runs = openRuns();
  const { id } = await runs.start(stubborn, null);
  await begun.wait();
  await first.kill();
  await start([stubborn]);
  expect(await ended(runs, stubborn, id)).toMatchObject({ status: "done", result: 2 });
});
const mapOf = (name: string, data: Record<string, string>) => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { namespace: "default", name },
  data,
});

test("a step uses another cluster; an unavailable cluster delays only its own steps and costs no tries", async () => {
  const folder = await mkdtemp(join(tmpdir(), "konverge-west-"));
  cleanup.defer(() => rm(folder, { recursive: true }));
  const kubeconfig = join(folder, "kubeconfig");
  const openWest = async (port = 0) =>
    await createApiServer({ port, dataDir: join(folder, "data") });
  let west = await openWest();
  cleanup.defer(() => west.close());
  await writeFile(kubeconfig, west.kubeconfig);
  const port = Number(new URL(west.url).port);
  await west.close();

  const copy = defineWorkflow("copy", { version: 1 }, async (w, name: string) => {
    const options = { retry: { attempts: 1 } };
    const here = await w.step("here", (k) => k.apply(mapOf(name, { at: "home" })), options);
    const there = await w.step(
      "there",
      (k) => k.on("west").apply(mapOf(name, { at: "west" })),
      options,
    );
    return [here.cluster ?? "home", there.cluster ?? "home"];
  });
  const { prefix } = workers.queues;
  const config = defineConfig({
    workflows: [copy],
    settings: { prefix, cluster: "default" },
    clusters: { default: {}, west: { kubeconfig } },
  });
  const worker = await workers.start([], { config });
  const runs = openRuns();
  const { id } = await runs.start(copy, "copied");
  const parked = await inStatus(runs, copy, id, "waiting");
  expect(parked.waits, "tried several times by now").toMatchObject([{ step: "there" }]);
  expect(
    (await workers.client.get(ConfigMap, { namespace: "default", name: "copied" })).data,
  ).toEqual({ at: "home" });
  expect(worker.ready, "its own cluster is well").toBe(true);

  west = await openWest(port);
  expect(await ended(runs, copy, id)).toMatchObject({ status: "done", result: ["home", "west"] });
  expect(west.objects("configmaps").map(({ data }) => data)).toContainEqual({ at: "west" });
  expect(await worker.metrics()).toMatch(
    /konverge_guard_admitted_calls_total\{cluster="west"[^}]*\} [1-9]/,
  );
  await worker.stop();
  expect(await worker.metrics()).not.toMatch(/konverge_guard_\w+\{cluster="west"/);
});
