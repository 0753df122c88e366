import { readSettings } from "@konverge/contracts";
import { TerminalError, type ResourceType } from "@konverge/core";
import { defineConfig, startWorkerProcess, type WorkerProcess } from "@konverge/worker";
import { defineController } from "@konverge/engine";
import { openGuardControl } from "@konverge/guard";
import { defineWorkflow, openWorkflows } from "@konverge/workflow";
import { afterAll, beforeAll, expect, onTestFinished, test, type TestContext } from "vitest";
import {
  alertGroups,
  BACKLOG_AGE_QUERY,
  RUNBOOKS,
} from "../../../apps/cli/src/manifests/alert-rules.ts";
import {
  openPromql,
  parseScrape,
  seriesOf,
  type Promql,
  type Scrape,
} from "../../support/promql.ts";
import { withoutHome } from "../../support/without-home.ts";
import { startEmbeddedServer, type EmbeddedServer } from "../kube/embedded-server.ts";
import { installWidgets, type Widget } from "../kube/kube-servers.ts";
import { hold, useQueues } from "../queue/queue-harness.ts";
import { until } from "../../support/until.ts";

const harness = useQueues();
const prefix = `alerts-${process.pid}`;
const groups = alertGroups({ installation: prefix, clusters: ["default"], runbooks: RUNBOOKS });
const query = BACKLOG_AGE_QUERY.replaceAll("INSTALLATION", prefix);
let promql: Promql | undefined;
let missing = "";
let server: EmbeddedServer;
let worker: WorkerProcess;
let Widgets: ResourceType<Widget>;
let fails = false;
let isHopeless = true;
const held = hold();
const release = defineWorkflow("release", { version: 2 }, async (w) => {
  await w.step("push", () => Promise.reject(new Error("broken on purpose")), {
    retry: { attempts: 1 },
  });
});

beforeAll(async () => {
  const opened = await openPromql();
  if ("missing" in opened) missing = opened.missing;
  else promql = opened;
  server = await startEmbeddedServer();
  Widgets = await installWidgets(server.client, "alerts.test.konverge.dev");
  const widgets = defineController({
    name: "widgets",
    for: Widgets,
    concurrency: 1,
    backoff: { failure: { baseMs: 1, capMs: 2 } },
    reconcile: async ({ object }) => {
      if (object.metadata.name === "hopeless" && isHopeless)
        throw new TerminalError("broken on purpose");
      if (fails) throw new Error("broken on purpose");
      if (object.metadata.name === "slow") await held.wait();
    },
  });
  worker = await startWorkerProcess({
    config: defineConfig({ controllers: [widgets], workflows: [release] }),
    settings: readSettings({
      env: {
        KONVERGE_REDIS_URL: harness.url,
        KONVERGE_PREFIX: prefix,
        KONVERGE_KUBECONFIG: server.kubeconfig,
        KONVERGE_METRICS_PORT: "0",
        KONVERGE_LOG_LEVEL: "silent",
      },
    }),
    version: "1.2.3",
  });
});
afterAll(async () => {
  await worker?.kill();
  await server?.[Symbol.asyncDispose]();
});

/** Returns a scrape, without the labels that all of its series share. */
async function scrape(): Promise<Map<string, number>> {
  const text = await (await fetch(worker.metricsUrl)).text();
  return new Map(parseScrape(withoutHome(text)));
}

/** Returns the values of the query, and the alerts whose expressions hold. */
async function look(): Promise<{ readonly age: number[]; readonly firing: string[] }> {
  scrapes.push(parseScrape(await (await fetch(worker.metricsUrl)).text()));
  const series = seriesOf(scrapes.slice(-2));
  const [samples = []] = (await promql?.evaluate(series, [query])) ?? [];
  const firing = (await promql?.pending(series, groups)) ?? [];
  return { age: samples.map(({ value }) => value), firing: firing.map(({ alert }) => alert) };
}
const scrapes: Scrape[] = [];
const isSkipped = (context: TestContext) => {
  if (promql === undefined) context.skip(missing);
};
const leads = async () =>
  (await scrape()).get('konverge_leader_election_master_status{name="widgets"}') === 1;

test("fires no alert for healthy workers, and the query returns no waiting keys", async (context) => {
  isSkipped(context);
  await until("it leads", leads);
  await server.client.create(Widgets, {
    metadata: { namespace: "default", name: "one" },
    spec: {},
  });
  const name = 'konverge_reconcile_total{controller="widgets",result="success"}';
  await until("it has run", async () => ((await scrape()).get(name) ?? 0) > 0);
  await until("nothing waits", async () => (await look()).age[0] === 0);
  expect(await look()).toEqual({ age: [0], firing: [] });
});

test("the query grows while a key waits for a worker", async (context) => {
  isSkipped(context);
  onTestFinished(() => held.release());
  for (const name of ["slow", "waiting"]) {
    await server.client.create(Widgets, { metadata: { namespace: "default", name }, spec: {} });
  }
  await until("a key has waited for a moment", async () => ((await look()).age[0] ?? 0) > 0.2);
  held.release();
  await until("nothing waits any more", async () => (await look()).age[0] === 0);
  expect((await look()).firing).toEqual([]);
});

test("alerts on failures and on missing workers", async (context) => {
  isSkipped(context);
  await look();
  fails = true;
  onTestFinished(() => {
    fails = false;
  });
  await server.client.create(Widgets, {
    metadata: { namespace: "default", name: "bad" },
    spec: {},
  });
  const errors = 'konverge_reconcile_errors_total{controller="widgets"}';
  await until("it has failed", async () => ((await scrape()).get(errors) ?? 0) > 2);
  expect((await look()).firing).toContain("KonvergeFailing");
  const without = (await promql?.pending([], groups)) ?? [];
  expect(without.map(({ alert }) => alert)).toEqual(["KonvergeNoWorker"]);
});

test("alerts on dead letters until they are released", async (context) => {
  isSkipped(context);
  await server.client.create(Widgets, {
    metadata: { namespace: "default", name: "hopeless" },
    spec: {},
  });
  await until("it fires", async () => (await look()).firing.includes("KonvergeDeadLetters"));
  const queue = harness.open({ prefix, controller: "widgets" });
  isHopeless = false;
  await queue.control.release({ match: {} }, { by: "ada", reason: "a test" });
  await until("it ends", async () => !(await look()).firing.includes("KonvergeDeadLetters"));
  expect(await queue.backlog()).toMatchObject({ deadLettered: 0 });
});

test("alerts on a blocked run and on a failed one", async (context) => {
  isSkipped(context);
  const workflows = openWorkflows({ redis: harness.target, prefix });
  onTestFinished(() => workflows.close());
  await look();
  const count = async (series: string) => (await scrape()).get(`konverge_workflow_${series}`);
  await workflows.start(release, undefined);
  const failed = 'executions_total{workflow="release",result="failed"}';
  await until("it has failed", async () => (await count(failed)) === 1);
  const { firing } = await look();
  expect(firing).toContain("KonvergeRunsFailing");
  expect(firing).not.toContain("KonvergeRunsBlocked");
  // No worker has the code for it.
  await workflows.start({ ...release, version: 1 }, undefined);
  const blocked = 'runs{workflow="release",status="blocked"}';
  await until("one is blocked", async () => (await count(blocked)) === 1);
  expect((await look()).firing).toContain("KonvergeRunsBlocked");
});

test("while the API server is protected, the query returns nothing and one alert names it", async (context) => {
  isSkipped(context);
  const guards = openGuardControl({ redis: harness.target, prefix });
  onTestFinished(() => guards.close());
  await guards.isolate("default", { by: "ada", reason: "a test" });
  const isolated = 'konverge_guard_breaker_state{state="isolated"}';
  await until("the worker has heard of it", async () => (await scrape()).get(isolated) === 1);
  // The Lease is not renewed, so its holder resigns.
  await until("it no longer leads", async () => !(await leads()));
  const { age, firing } = await look();
  expect(age).toEqual([]);
  expect(firing).toContain("KonvergeApiServerProtected");
  expect(firing).not.toContain("KonvergeNoLeader");
  expect(firing).not.toContain("KonvergeRedisUnavailable");
});
