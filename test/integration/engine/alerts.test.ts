import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { readSettings } from "@konverge/contracts";
import type { ResourceType } from "@konverge/core";
import { defineConfig, startWorkerProcess, type WorkerProcess } from "@konverge/worker";
import { defineController } from "@konverge/engine";
import { openGuardControl } from "@konverge/guard";
import { defineWorkflow, openWorkflows } from "@konverge/workflow";
import { load } from "js-yaml";
import { afterAll, beforeAll, expect, onTestFinished, test, type TestContext } from "vitest";
import { findPromql } from "../../../infra/prometheus/find-promql.js";
import { startEmbeddedServer, type EmbeddedServer } from "../kube/embedded-server.ts";
import { installWidgets, type Widget } from "../kube/kube-servers.ts";
import { hold, useQueues } from "../queue/queue-harness.ts";
import { until } from "../../support/until.ts";

const harness = useQueues();
const FILES = "infra/helm/konverge/files";
const query = readFileSync(`${FILES}/backlog-age.promql`, "utf8").trim();
const { groups } = load(readFileSync(`${FILES}/alerts.yaml`, "utf8")) as {
  readonly groups: readonly {
    readonly rules: readonly { readonly alert: string; readonly expr: string }[];
  }[];
};
const rules = groups.flatMap((group) => group.rules);

interface Series {
  readonly labels: Readonly<Record<string, string>>;
  readonly points: readonly (readonly [secondsAgo: number, value: number])[];
}
interface Answer {
  readonly samples: readonly { readonly value: number }[] | null;
  readonly error?: string;
}

const prefix = `alerts-${process.pid}`;
let promql: string | undefined;
let missing = "";
let server: EmbeddedServer;
let worker: WorkerProcess;
let Widgets: ResourceType<Widget>;
let fails = false;
const held = hold();
const release = defineWorkflow("release", { version: 2 }, async (w) => {
  await w.step("push", () => Promise.reject(new Error("broken on purpose")), {
    retry: { attempts: 1 },
  });
});

beforeAll(async () => {
  const found = await findPromql({ log: (line) => console.error(line) });
  if ("missing" in found) missing = found.missing;
  else promql = found.path;
  server = await startEmbeddedServer();
  Widgets = await installWidgets(server.client, "alerts.test.konverge.dev");
  const widgets = defineController({
    name: "widgets",
    for: Widgets,
    concurrency: 1,
    backoff: { failure: { baseMs: 1, capMs: 2 } },
    reconcile: async ({ object }) => {
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
}, 300_000);
afterAll(async () => {
  await worker?.kill();
  await server?.[Symbol.asyncDispose]();
});

async function scrape(): Promise<Map<string, number>> {
  const text = await (await fetch(worker.metricsUrl)).text();
  return new Map(
    [...text.matchAll(/^([a-z_]\w*(?:\{.*\})?) (\S+)$/gm)].map(([, name = "", value]) => [
      name,
      value === "+Inf" ? Number.MAX_VALUE : Number(value),
    ]),
  );
}

/** Returns series with one value, or with two values a minute apart if there is an earlier scrape. */
function seriesOf(
  now: ReadonlyMap<string, number>,
  before?: ReadonlyMap<string, number>,
): Series[] {
  return [...now].map(([series, value]) => {
    const [, name = "", labels = ""] = /^(\w+)(?:\{(.*)\})?$/.exec(series) ?? [];
    const pairs = [...labels.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)];
    const earlier = before?.get(series);
    return {
      labels: { __name__: name, ...Object.fromEntries(pairs.map(([, key, text]) => [key, text])) },
      points: [...(earlier === undefined ? [] : [[60, earlier] as const]), [0, value]],
    };
  });
}

/** Evaluates expressions with Prometheus' engine and returns their values. */
async function evaluate(
  series: readonly Series[],
  expressions: readonly string[],
): Promise<number[][]> {
  const output = await new Promise<string>((resolve, reject) => {
    const child = execFile(promql ?? "", [], { maxBuffer: 2 ** 24 }, (error, stdout) => {
      if (error === null) resolve(stdout);
      else reject(error);
    });
    child.stdin?.end(JSON.stringify({ series, expressions }));
  });
  return (JSON.parse(output) as Answer[]).map(({ samples, error }, index) => {
    if (error !== undefined) throw new Error(`${expressions[index]}: ${error}`);
    return (samples ?? []).map(({ value }) => value);
  });
}

async function firing(series: readonly Series[]): Promise<string[]> {
  const answers = await evaluate(
    series,
    rules.map(({ expr }) => expr),
  );
  return rules.filter((_, index) => (answers[index]?.length ?? 0) > 0).map(({ alert }) => alert);
}
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
  const before = await scrape();
  const name = 'konverge_reconcile_total{controller="widgets",result="success"}';
  await until("it has run", async () => ((await scrape()).get(name) ?? 0) > 0);
  await until("nothing waits", async () => {
    const [values] = await evaluate(seriesOf(await scrape()), [query]);
    return values?.length === 1 && values[0] === 0;
  });
  expect(await firing(seriesOf(await scrape(), before))).toEqual([]);
});

test("the query grows while a key waits for a worker", async (context) => {
  isSkipped(context);
  onTestFinished(() => held.release());
  for (const name of ["slow", "waiting"]) {
    await server.client.create(Widgets, { metadata: { namespace: "default", name }, spec: {} });
  }
  await until("a key has waited for a moment", async () => {
    const [values] = await evaluate(seriesOf(await scrape()), [query]);
    return (values?.[0] ?? 0) > 0.2;
  });
  held.release();
  await until("nothing waits any more", async () => {
    const [values] = await evaluate(seriesOf(await scrape()), [query]);
    return values?.[0] === 0;
  });
  expect(await firing(seriesOf(await scrape()))).toEqual([]);
});

test("alerts on failures and on missing workers", async (context) => {
  isSkipped(context);
  const before = await scrape();
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
  expect(await firing(seriesOf(await scrape(), before))).toContain("KonvergeFailing");
  expect(await firing([])).toEqual(["KonvergeNoWorker", "KonvergeRedisUnavailable"]);
});

test("alerts on a blocked run and on a failed one", async (context) => {
  isSkipped(context);
  const workflows = openWorkflows({ redis: harness.target, prefix });
  onTestFinished(() => workflows.close());
  const before = await scrape();
  const count = async (series: string) => (await scrape()).get(`konverge_workflow_${series}`);
  await workflows.start(release, undefined);
  const failed = 'executions_total{workflow="release",result="failed"}';
  await until("it has failed", async () => (await count(failed)) === 1);
  const failing = await firing(seriesOf(await scrape(), before));
  expect(failing).toContain("KonvergeRunsFailing");
  expect(failing).not.toContain("KonvergeRunsBlocked");
  // No worker has the code for it.
  await workflows.start({ ...release, version: 1 }, undefined);
  const blocked = 'runs{workflow="release",status="blocked"}';
  await until("one is blocked", async () => (await count(blocked)) === 1);
  expect(await firing(seriesOf(await scrape()))).toContain("KonvergeRunsBlocked");
});

test("while the API server is protected, the query returns nothing and an alert fires", async (context) => {
  isSkipped(context);
  const guards = openGuardControl({ redis: harness.target, prefix });
  onTestFinished(() => guards.close());
  await guards.isolate("default", { by: "ada", reason: "a test" });
  const isolated = 'konverge_guard_breaker_state{cluster="default",state="isolated"}';
  await until("the worker has heard of it", async () => (await scrape()).get(isolated) === 1);
  const series = seriesOf(await scrape());
  expect(await evaluate(series, [query])).toEqual([[]]);
  expect(await firing(series)).toContain("KonvergeApiServerProtected");
});
