import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { startApi } from "@konverge/api";
import { readSettings } from "@konverge/contracts";
import { defineController } from "@konverge/engine";
import { openGuardControl } from "@konverge/guard";
import { defineConfig, startWorkerProcess } from "@konverge/worker";
import { loadAll } from "js-yaml";
import { expect, onTestFinished, test } from "vitest";
import { BACKLOG_AGE_QUERY } from "../../../apps/cli/src/manifests/alert-rules.ts";
import { openKeda, type KedaTrigger } from "../../support/keda.ts";
import { openPromql, parseScrape, seriesOf, type Promql } from "../../support/promql.ts";
import { until } from "../../support/until.ts";
import { startEmbeddedServer } from "../kube/embedded-server.ts";
import { installWidgets } from "../kube/kube-servers.ts";
import { hold, useQueues } from "../queue/queue-harness.ts";

const harness = useQueues();
const prefix = `keda-${process.pid}`;
const TOKEN = "a-token-of-the-tests-0123456789abcdef";
const held = hold();

/** The API of Prometheus for one query, with the last scrape of a worker and Prometheus' engine. */
async function startPrometheus(promql: Promql, metricsUrl: string): Promise<string> {
  const answer = async (query: string) => {
    const scrape = parseScrape(await (await fetch(metricsUrl)).text());
    const [samples = []] = await promql.evaluate(seriesOf([scrape]), [query]);
    const result = samples.map(({ value, labels: metric }) => {
      return { metric, value: [Date.now() / 1_000, String(value)] };
    });
    return JSON.stringify({ status: "success", data: { resultType: "vector", result } });
  };
  const server = createServer((request, response) => {
    const url = new URL(request.url ?? "", "http://localhost");
    expect(url.pathname).toBe("/api/v1/query");
    void answer(url.searchParams.get("query") ?? "").then((text) =>
      response.writeHead(200, { "content-type": "application/json" }).end(text),
    );
  });
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

async function startProcesses() {
  const server = await startEmbeddedServer();
  onTestFinished(() => server[Symbol.asyncDispose]());
  const Widgets = await installWidgets(server.client, "keda.test.konverge.dev");
  const nodePool = defineController({
    name: "node-pool",
    for: Widgets,
    concurrency: 1,
    reconcile: async ({ object }) => {
      if (object.metadata.name === "slow") await held.wait();
    },
  });
  const env = { KONVERGE_PREFIX: prefix, KONVERGE_LOG_LEVEL: "silent", KONVERGE_TOKEN: TOKEN };
  const worker = await startWorkerProcess({
    config: defineConfig({ controllers: [nodePool] }),
    settings: readSettings({
      env: {
        ...env,
        KONVERGE_REDIS_URL: harness.url,
        KONVERGE_KUBECONFIG: server.kubeconfig,
        KONVERGE_METRICS_PORT: "0",
      },
    }),
    version: "1.2.3",
  });
  onTestFinished(() => worker.kill());
  const api = await startApi({
    settings: { ...readSettings({ env }), redisUrl: harness.apiUrl, apiPort: 0, apiDrain: 0 },
    version: "1.2.3",
  });
  onTestFinished(() => api.stop());
  const add = (name: string) =>
    server.client.create(Widgets, { metadata: { namespace: "default", name }, spec: {} });
  return { worker, api, add };
}

/** The trigger of docs/cluster.md, at the address of the API. */
function documentedTrigger(apiUrl: string): KedaTrigger {
  const blocks = readFileSync("docs/cluster.md", "utf8").matchAll(/```yaml\n(.*?)```/gs);
  const documents = [...blocks].flatMap(([, text = ""]) => loadAll(text)) as {
    readonly kind?: string;
    readonly spec?: { readonly triggers: readonly [KedaTrigger] };
  }[];
  const [trigger] = documents.find(({ kind }) => kind === "ScaledObject")?.spec?.triggers ?? [];
  if (trigger === undefined) throw new Error("docs/cluster.md has no ScaledObject");
  const url = trigger.metadata["url"]?.replace("http://konverge-api.konverge:7070", apiUrl) ?? "";
  return { ...trigger, metadata: { ...trigger.metadata, url }, authParams: { token: TOKEN } };
}

/** Returns a Kubernetes quantity without or with `m` as a number. */
const numberOf = (quantity = "") =>
  quantity.endsWith("m") ? Number(quantity.slice(0, -1)) / 1_000 : Number(quantity);

test("KEDA's scalers read the backlog of a worker, and keep the workers while the breaker is open", async (context) => {
  const [promql, keda] = [await openPromql(), await openKeda()];
  if ("missing" in promql) return context.skip(promql.missing);
  if ("missing" in keda) return context.skip(keda.missing);
  const { worker, api, add } = await startProcesses();
  // The trigger of the chart; test/e2e/chart.test.ts renders it.
  const ofChart: KedaTrigger = {
    type: "prometheus",
    metricType: "Value",
    metadata: {
      serverAddress: await startPrometheus(promql, worker.metricsUrl),
      query: BACKLOG_AGE_QUERY.replaceAll("INSTALLATION", prefix),
      threshold: "10",
      ignoreNullValues: "false",
    },
  };
  const ask = async () => {
    const [age, waiting] = await keda.ask([ofChart, documentedTrigger(api.url)]);
    return { age, waiting };
  };
  const idle = {
    age: { metricType: "Value", target: "10", values: ["0"], isActive: false },
    waiting: { metricType: "AverageValue", target: "500", values: ["0"], isActive: false },
  };
  await until("the worker leads", async () => (await ask()).age?.values[0] === "0");
  expect(await ask()).toEqual(idle);

  onTestFinished(() => held.release());
  await add("slow");
  await add("next");
  await until("a change waits", async () => numberOf((await ask()).age?.values[0]) > 0.2);
  expect(await ask()).toMatchObject({
    age: { target: "10", isActive: true },
    waiting: { values: ["1"], isActive: true },
  });
  held.release();
  await until("nothing waits", async () => (await ask()).age?.values[0] === "0");
  expect(await ask()).toEqual(idle);

  const guards = openGuardControl({ redis: harness.target, prefix });
  onTestFinished(() => guards.close());
  await guards.isolate("default", { by: "ada", reason: "a test" });
  // With an error, the HorizontalPodAutoscaler keeps the number of Pods.
  const { age } = await until("there is no result", async () => {
    const found = await ask();
    return found.age?.error === undefined ? undefined : found;
  });
  expect(age).toMatchObject({ values: [], isActive: false });
  expect(age?.error).toMatch(/metrics .*target may be lost, the result is empty/);
});
