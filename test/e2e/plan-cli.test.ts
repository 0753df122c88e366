import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { child, defineController } from "@konverge/engine";
import { ConfigMap } from "@konverge/kube/kinds";
import { planRecordSchema } from "@konverge/records";
import { expect, onTestFinished, test } from "vitest";
import { useWorkers } from "../integration/worker/worker-harness.ts";
import { until } from "../support/until.ts";
import { runCommand } from "./cli-runner.ts";

const workers = useWorkers("plan-cli.test.konverge.dev");
const namespace = "default";
const environment = () => ({
  KONVERGE_REDIS_URL: workers.queues.apiUrl,
  KONVERGE_PREFIX: workers.queues.prefix,
});

test("object plan prints the changes of the next attempt, and exits with 1 if it is incomplete", async () => {
  const { Widgets, client } = workers;
  await workers.start([
    defineController({
      name: "widgets",
      for: Widgets,
      owns: [ConfigMap],
      reconcile: async ({ object, kube, plan, limit }) => {
        if (!plan) return;
        const { name } = object.metadata;
        await kube.reconcileChildren(object, [
          child(ConfigMap, { name: `${name}-child`, data: { color: "blue" } }),
        ]);
        if (name === "red") await limit("stripe", () => undefined);
      },
    }),
  ]);
  for (const name of ["blue", "red"]) {
    await client.create(Widgets, { metadata: { namespace, name }, spec: {} });
  }
  const plan = ["object", "plan", "widgets"];
  const text = await runCommand([...plan, "blue", "-n", namespace], environment());
  expect(text).toMatchObject({ code: 0 });
  expect(text.stdout).toContain("+ configmaps default/blue-child created");
  expect(text.stdout).toContain('data.color: "blue"');

  const json = await runCommand([...plan, "blue", "-n", namespace, "-o", "json"], environment());
  expect(planRecordSchema.parse(JSON.parse(json.stdout))).toMatchObject({ complete: true });

  const incomplete = await runCommand([...plan, "red", "-n", namespace], environment());
  expect(incomplete.code).toBe(1);
  expect(incomplete.stdout).toContain("not_plannable");
  const { items } = await client.list(ConfigMap, { namespace });
  expect(items.map(({ metadata }) => metadata.name)).not.toContain("blue-child");
});

test("approval lists, shows and decides plans, and deploy check compares the plans of all objects", async () => {
  const { Widgets, client } = workers;
  await client.create(ConfigMap, { metadata: { namespace, name: "doomed" } });
  await workers.start([
    defineController({
      name: "widgets",
      for: Widgets,
      approval: { when: ({ deletes }) => deletes > 0 },
      reconcile: async ({ kube }) => {
        const maps = await kube.list(ConfigMap);
        const map = maps.find(({ metadata }) => metadata.name === "doomed");
        if (map !== undefined) await kube.delete(map);
      },
    }),
  ]);
  await client.create(Widgets, { metadata: { namespace, name: "blue" }, spec: {} });
  const run = (...words: string[]) => runCommand(words, environment());
  const hash = await until("the plan waits", async () => {
    const { stdout } = await run("approval", "list", "-o", "json");
    return (JSON.parse(stdout) as { items: { hash: string }[] }).items[0]?.hash;
  });
  const short = hash.slice(0, 12);
  expect((await run("approval", "list")).stdout).toContain(short);
  const shown = await run("approval", "show", "widgets", "blue", "-n", namespace);
  expect(shown.stdout).toContain("- configmaps default/doomed deleted");
  const check = await run("deploy", "check", "--max-deletes", "0");
  expect(check).toMatchObject({ code: 1 });
  expect(check.stdout).toContain("exceeded: 1 deletions, at most 0 expected");
  const decide = (verb: string, plan: string) =>
    run("approval", verb, "widgets", "blue", "-n", namespace, "--plan", plan, "--reason", "test");
  expect(await decide("approve", "0".repeat(12))).toMatchObject({ code: 4 });
  expect(await decide("approve", short)).toMatchObject({ code: 0 });
  await until("the map is deleted", async () => {
    const { items } = await client.list(ConfigMap, { namespace });
    return !items.some(({ metadata }) => metadata.name === "doomed");
  });
  expect(await run("deploy", "check", "--expect", "unchanged")).toMatchObject({ code: 0 });
  expect((await run("plan", "--all")).stdout).toContain("1 objects planned, 1 without changes");
});

test("plan --config compares new code with the running code, and deploy check fails beyond its limits", async () => {
  const { Widgets, client, server } = workers;
  const folder = await mkdtemp(join(tmpdir(), "konverge-plan-cli-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const kubeconfig = join(folder, "kubeconfig");
  await writeFile(kubeconfig, server.kubeconfig);
  const names = ["blue", "green"];
  for (const name of names) {
    await client.create(Widgets, { metadata: { namespace, name }, spec: {} });
    await client.create(ConfigMap, { metadata: { namespace, name }, data: {} });
  }
  await workers.start([
    defineController({
      name: "widgets",
      for: Widgets,
      reconcile: async ({ object, kube, plan }) => {
        const { name } = object.metadata;
        const map = await kube.get(ConfigMap, { namespace, name });
        if (!plan) return;
        await kube.mutate(map, (draft) => {
          draft.metadata.labels = { version: "1" };
        });
      },
    }),
  ]);
  const run = (...words: string[]) =>
    runCommand([...words, "--config", "test/e2e/new-code.config.ts"], {
      ...environment(),
      KUBECONFIG: kubeconfig,
    });
  await until("all keys are known", async () => {
    const { stdout } = await runCommand(["object", "list", "-o", "json"], environment());
    return (JSON.parse(stdout) as { items: unknown[] }).items.length === names.length;
  });
  const before = (await client.list(ConfigMap, { namespace })).items;
  const resume = join(folder, "plans.jsonl");
  const compared = await run("plan", "--all", "--resume", resume);
  expect(compared).toMatchObject({ code: 0 });
  expect(compared.stdout.split("\n").slice(0, -1)).toEqual([
    "4 objects planned with new and running code, 0 without differences",
    "2 ConfigMap deleted, not changed",
    expect.stringContaining("default/blue"),
    "2 Widget changed: metadata.labels.version",
    expect.stringContaining("default/blue"),
  ]);
  const check = await run(
    "deploy",
    "check",
    "--max-deletes",
    "1",
    "--resume",
    resume,
    "-o",
    "json",
  );
  expect(check).toMatchObject({ code: 1 });
  expect(check.stderr).toContain("using the plans made since");
  expect(JSON.parse(check.stdout)).toMatchObject({
    fit: 0,
    planned: 4,
    deletes: 2,
    groups: [{ difference: "altered", action: "deleted", instead: "changed" }, {}],
    removed: [],
    exceeded: ["exceeded: 2 deletions, at most 1 expected"],
  });
  const limited = await run("deploy", "check", "--max-deletes", "2", "--resume", resume);
  expect(limited).toMatchObject({ code: 0 });
  // Nothing was written.
  expect((await client.list(ConfigMap, { namespace })).items).toEqual(before);
  const planned = workers.calls("konverge-planner/").filter((call) => !call.startsWith("get"));
  expect(planned.filter((call) => /^(create|update|patch|delete)/.test(call))).not.toEqual([]);
  expect(planned.filter((call) => !/^(list|watch) |dryRun=All/.test(call))).toEqual([]);
});
