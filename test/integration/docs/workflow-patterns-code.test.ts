import { TerminalError } from "@konverge/core";
import type { Config } from "@konverge/worker";
import {
  condition,
  defineWorkflow,
  field,
  type AnyWorkflow,
  type WorkflowContext,
  type Workflow,
} from "@konverge/workflow";
import { Node } from "@konverge/kube/kinds";
import { expect, test } from "vitest";
import { z } from "zod";
import { startTestCluster, testWorkflow } from "../../../apps/cli/src/testing/index.ts";
import { ended, inStatus, useWorkflows } from "../workflow/workflow-harness.ts";
import { until } from "../../support/until.ts";
import { blockOf, functionOf } from "./load-block.ts";

const harness = useWorkflows();

/** Loads a block of docs/workflow-patterns.md as the body of a workflow, which receives `env` beside `w` and `spec`. */
async function patternOf(name: string, env: object, returns?: string): Promise<Workflow<object>> {
  const exported = { TerminalError, z, condition, field };
  const names = ["w", "spec", ...Object.keys({ ...exported, ...env })];
  const body = await functionOf(blockOf(name), names, returns);
  return defineWorkflow("pattern", { version: 1 }, async (w: WorkflowContext, spec: object) => {
    return (await body({ w, spec, ...exported, ...env })) as never;
  });
}

test("docs/workflow-patterns.md: an approval is reminded, given or refused, and has a deadline", async () => {
  const log: string[] = [];
  const approval = await patternOf("docs/workflow-patterns.md ts 1", {
    chat: { post: (text: string) => void log.push(text) },
    publish: (version: string) => void log.push(`publish ${version}`),
  });
  const start = () => testWorkflow(approval, { version: "1.4.0" });
  const early = start();
  expect(await early.signal("approve", { approved: true })).toMatchObject({ status: "done" });
  expect(log).toEqual(["publish 1.4.0"]);
  log.length = 0;
  const late = start();
  expect(await late.advance("23h")).toMatchObject({ status: "waiting" });
  expect(log).toEqual(["1.4.0 waits for an approval"]);
  const refused = await late.signal("approve", { approved: false, comment: "freeze" });
  expect(refused).toMatchObject({ status: "failed", error: { message: "refused: freeze" } });
  const ignored = await start().advance("24h");
  expect(ignored).toMatchObject({ status: "failed", error: { message: "no answer within a day" } });
  expect(log).not.toContain("publish 1.4.0");
});

test("docs/workflow-patterns.md: a user's answer is refused with its reason until it fits", async () => {
  const moves: unknown[] = [];
  const form = await patternOf("docs/workflow-patterns.md ts 2", {
    move: (zone: string) => void moves.push(zone),
  });
  const t = testWorkflow(form, { zone: "eu-1", candidates: ["eu-2", "eu-3"] });
  const { published } = await t.settle();
  expect(published).toEqual({
    question: { text: "Which zone replaces eu-1?", options: ["eu-2", "eu-3"] },
  });
  await expect(t.update("choose zone", { zone: "us-1" })).rejects.toThrow(
    "us-1 is not one of eu-2, eu-3",
  );
  expect(await t.run()).toMatchObject({ status: "waiting" });
  expect(await t.update("choose zone", { zone: "eu-3" })).toMatchObject({ zone: "eu-3" });
  const run = await t.run();
  expect(run.status).toBe("done");
  expect(run.published ?? {}).toEqual({});
  expect(moves).toEqual(["eu-3"]);
});

test("docs/workflow-patterns.md: runs of a tenant are executed one after another, in order", async () => {
  const migrate = defineWorkflow("migrate", { version: 1 }, async (w) => {
    await w.signal("end");
  });
  const workflows = harness.openRuns();
  const start = await functionOf<string>(
    blockOf("docs/workflow-patterns.md ts 3"),
    ["workflows", "migrate", "spec"],
    "id",
  );
  const ids: string[] = [];
  for (const to of [2, 3]) {
    ids.push(await start({ workflows, migrate, spec: { tenant: "acme", to } }));
  }
  const [first = "", second = ""] = ids;
  expect(second).not.toBe(first);
  workflows.work({ workflows: [migrate] });
  await inStatus(workflows, migrate, first, "waiting");
  expect(await workflows.get({ workflow: "migrate", id: second })).toMatchObject({
    status: "queued",
  });
  await workflows.signal({ workflow: "migrate", id: first }, "end");
  const after = await inStatus(workflows, migrate, second, "waiting");
  const { endedAtMs = Infinity } = await ended(workflows, migrate, first);
  expect(after.key).toBe("tenant:acme");
  expect(endedAtMs).toBeLessThan(Infinity);
});

test("docs/workflow-patterns.md: a failed order is compensated in reverse order by idempotency keys", async () => {
  const effects = new Map<string, string>();
  const undone: string[] = [];
  const third = (name: string) => ({
    make: (_: unknown, key: string) => void effects.set(key, name),
    remove: (key: string) => {
      if (effects.delete(key)) undone.push(name);
    },
  });
  const [stock, bank] = [third("stock"), third("bank")];
  const order = await patternOf("docs/workflow-patterns.md ts 4", {
    stock: { reserve: stock.make, release: stock.remove },
    bank: { charge: bank.make, refund: bank.remove },
    carrier: {
      ship: () => {
        throw new Error("no truck");
      },
    },
  });
  const spec = { id: "o1", items: ["hat"], amount: 7 };
  const t = testWorkflow(order, spec, { replayEveryStep: true });
  expect(await t.advance("1h")).toMatchObject({ status: "failed" });
  expect(undone).toEqual(["bank", "stock"]);
  expect(t.bodies.filter((body) => body === "ship")).toHaveLength(3);
  // A step that has failed may have had an effect, so its undo runs too.
  const failing = testWorkflow(order, spec);
  failing.failStep("charge", new Error("busy"), { times: 5 });
  expect(await failing.advance("1h")).toMatchObject({ status: "failed" });
  expect(failing.bodies).toContain("undo:charge");
  expect(effects.size).toBe(0);
});

test("docs/workflow-patterns.md: polls until the build is done, and fails with it", async () => {
  const keys: string[] = [];
  let status = "running";
  const ci = {
    start: (_: object, key: string) => void keys.push(key),
    get: () => ({ status, image: "web:2" }),
  };
  const build = await patternOf("docs/workflow-patterns.md ts 5", { ci }, "image");
  const t = testWorkflow(build, {});
  for (let hour = 0; hour < 5; hour++) {
    expect(await t.advance("1h")).toMatchObject({ status: "waiting" });
  }
  expect((await t.steps()).size).toBe(1);
  status = "done";
  expect(await t.advance("30s")).toMatchObject({ status: "done", result: "web:2" });
  expect(keys).toHaveLength(1);
  status = "failed";
  const failed = await testWorkflow(build, {}).settle();
  expect(failed).toMatchObject({ status: "failed" });
});

test("docs/workflow-patterns.md: five hosts at a time are upgraded, and the third failure stops the run", async () => {
  const hosts = Array.from({ length: 20 }, (_, index) => `h${index}`);
  const run = async (bad: readonly string[]) => {
    let active = 0;
    let most = 0;
    const tried = new Set<string>();
    const reports: unknown[] = [];
    const fanOut = await patternOf("docs/workflow-patterns.md ts 6", {
      upgrade: async (host: string) => {
        tried.add(host);
        most = Math.max(most, (active += 1));
        await new Promise((resolve) => setImmediate(resolve));
        active -= 1;
        if (bad.includes(host)) throw new Error(`${host} is full`);
      },
      report: (failed: readonly string[]) => void reports.push(failed),
    });
    const { status } = await testWorkflow(fanOut, { hosts }).advance("1h");
    return { status, most, reports, tried: tried.size };
  };
  const tolerated = await run(["h3", "h7"]);
  expect(tolerated).toMatchObject({ status: "done", reports: [["h3", "h7"]], tried: 20 });
  expect(tolerated.most).toBeLessThanOrEqual(5);
  const stopped = await run(["h0", "h1", "h2"]);
  expect(stopped).toMatchObject({ status: "failed", reports: [] });
  expect(stopped.tried).toBeLessThan(20);
});

test("docs/workflow-patterns.md: a daily job reports each missed day once", async () => {
  const days: string[] = [];
  const load = await functionOf<Config>(
    blockOf("docs/workflow-patterns.md ts 7"),
    ["writeReport"],
    "exported",
  );
  const { workflows: defined, schedules } = await load({
    writeReport: (day: string) => void days.push(day),
  });
  expect(schedules).toMatchObject([{ name: "daily-report", overlap: "buffer-all" }]);
  const workflows = harness.openRuns();
  workflows.work({ workflows: defined });
  workflows.schedule(schedules);
  await until("it is known", async () => (await workflows.schedules.list()).length > 0);
  const range = {
    fromMs: Date.parse("2025-03-28T00:00:00Z"),
    toMs: Date.parse("2025-03-31T00:00:00Z"),
  };
  const { times } = await workflows.schedules.backfill("daily-report", range);
  // Six o'clock in Berlin, before and after the change of the clock.
  const at = ["2025-03-28T05", "2025-03-29T05", "2025-03-30T04"];
  expect(times.map(({ atMs }) => new Date(atMs).toISOString().slice(0, 13))).toEqual(at);
  for (const { run } of times) await ended(workflows, defined[0] as AnyWorkflow, run);
  // A run of today may be among them.
  const past = days.filter((day) => day.startsWith("2025-"));
  expect(past).toEqual(["2025-03-27", "2025-03-28", "2025-03-29"]);
});

test("docs/workflow-patterns.md: nodes restart one after another, each with a new boot ID", async () => {
  await using k = await startTestCluster({});
  const nodes = ["a", "b"];
  const setStatus = async (name: string, bootID: string, status: string) => {
    const node = await k.client.get(Node, { name });
    await k.kube.mutateStatus(node, (draft) => {
      Object.assign(draft.status, {
        nodeInfo: { bootID },
        conditions: [{ type: "Ready", status }],
      });
    });
  };
  for (const name of nodes) {
    await k.apply(Node, { metadata: { name }, spec: { unschedulable: true } });
    await setStatus(name, "1", "True");
  }
  const log: string[] = [];
  const nodeDrain = defineWorkflow(
    "drain",
    { version: 1 },
    async (_, { node }: { node: string }) => {
      log.push(`drain ${node}`);
    },
  );
  interface Shown {
    readonly status?: {
      readonly nodeInfo?: { readonly bootID: string };
      readonly conditions?: readonly { readonly type: string; readonly status: string }[];
    };
  }
  const restart = await patternOf("docs/workflow-patterns.md ts 8", {
    nodeDrain,
    machines: { restart: (name: string) => void log.push(`restart ${name}`) },
    bootOf: (node: Shown | undefined) => node?.status?.nodeInfo?.bootID ?? "",
    isReady: ({ status }: Shown) => status?.conditions?.[0]?.status === "True",
  });
  const t = testWorkflow(restart, { nodes }, { kube: k.client, children: [nodeDrain] });
  expect(await t.settle()).toMatchObject({ status: "waiting" });
  // It still reports Ready from before the restart.
  expect(log).toEqual(["drain a", "restart a"]);
  await setStatus("a", "2", "False");
  expect(await t.settle()).toMatchObject({ status: "waiting" });
  await setStatus("a", "2", "True");
  expect(await t.settle()).toMatchObject({ status: "waiting" });
  expect((await k.client.get(Node, { name: "a" })).spec?.unschedulable ?? false).toBe(false);
  expect(log).toEqual(["drain a", "restart a", "drain b", "restart b"]);
  expect(await t.advance("15m")).toMatchObject({ status: "failed" });
});

test("docs/workflow-patterns.md: runs forever in rounds, and looks at once after a signal", async () => {
  let found = 0;
  const inspect = () => (found += 1);
  const env = { defineWorkflow, inspect };
  const patrol = (await (
    await functionOf(blockOf("docs/workflow-patterns.md ts 9"), Object.keys(env), "patrol")
  )(env)) as Workflow<{ found: number }>;
  const t = testWorkflow(patrol, { found: 0 });
  for (let round = 1; round <= 3_000; round += 1) await t.advance("1h");
  expect(await t.signal("look now")).toMatchObject({
    status: "waiting",
    round: 3_002,
    published: { found: (3_002 * 3_003) / 2 },
  });
  expect((await t.steps()).size).toBe(1);
});

test("docs/workflow-patterns.md: a long body continues after its last heartbeat", async () => {
  const rows: number[] = [];
  const copy = await patternOf("docs/workflow-patterns.md ts 10", {
    copyRow: async (row: number) => void rows.push(row),
  });
  const t = testWorkflow(copy, { rows: 5 });
  t.crashAtHeartbeat("copy", 3);
  expect(await t.settle()).toMatchObject({ status: "done" });
  expect(rows).toEqual([1, 2, 3, 4, 5]);
});
