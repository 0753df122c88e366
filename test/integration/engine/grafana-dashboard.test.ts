import { createHmac, randomUUID } from "node:crypto";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startApi } from "@konverge/api";
import { readSettings } from "@konverge/contracts";
import { defineController, githubSignature, inbound } from "@konverge/engine";
import { defineConfig, startWorkerProcess, webhook } from "@konverge/worker";
import { openMutations } from "@konverge/mutations";
import { ConfigMap } from "@konverge/kube/kinds";
import { defineWorkflow, openWorkflows } from "@konverge/workflow";
import { expect, onTestFinished, test } from "vitest";
import { grafanaDashboard } from "../../../apps/cli/src/manifests/grafana-dashboard.ts";
import { openPromql, parseScrape, seriesOf, type Scrape } from "../../support/promql.ts";
import { until } from "../../support/until.ts";
import { startEmbeddedServer } from "../kube/embedded-server.ts";
import { installWidgets, type Widget } from "../kube/kube-servers.ts";
import { useQueues } from "../queue/queue-harness.ts";

const harness = useQueues();
const prefix = `grafana-${process.pid}`;
const SECRET = "a-secret-of-the-test";
const release = defineWorkflow("release", { version: 1 }, async (w) => {
  await w.step("push", () => 1);
});

async function startProcesses() {
  const server = await startEmbeddedServer();
  onTestFinished(() => server[Symbol.asyncDispose]());
  const Widgets = await installWidgets(server.client, "grafana.test.konverge.dev");
  const widgets = defineController({
    name: "widgets",
    for: Widgets,
    slo: { threshold: "30s", objective: 0.99 },
    sources: [
      inbound("github", {
        verify: githubSignature(),
        map: ({ data }) => ({ namespace: "default", name: (data as { name: string }).name }),
      }),
    ],
    reconcile: async ({ object, kube }) => {
      await kube.mutateStatus(object, (draft) => {
        draft.status["seen"] = true;
      });
    },
  });
  const env = { KONVERGE_PREFIX: prefix, KONVERGE_LOG_LEVEL: "silent" };
  const worker = await startWorkerProcess({
    config: defineConfig({
      controllers: [widgets],
      workflows: [release],
      mutations: { kinds: [ConfigMap] },
      notify: [{ on: ["run_blocked"], to: webhook("http://127.0.0.1:1/", { format: "json" }) }],
    }),
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
  const settings = readSettings({
    env: {
      ...env,
      KONVERGE_INBOUND_SECRETS: `github=${SECRET}`,
      KONVERGE_AUDIT_FILE: join(mkdtempSync(join(tmpdir(), "grafana-")), "audit.jsonl"),
    },
  });
  const api = await startApi({
    settings: { ...settings, redisUrl: harness.apiUrl, apiPort: 0 },
    version: "1.2.3",
  });
  onTestFinished(() => api.stop());
  return { server, Widgets, worker, api };
}

type Processes = Awaited<ReturnType<typeof startProcesses>>;

/** Causes an attempt, a run, a mutation and a delivery. */
function openActivity({ server, Widgets, api }: Processes): () => Promise<void> {
  const workflows = openWorkflows({ redis: harness.target, prefix });
  onTestFinished(() => workflows.close());
  const mutations = openMutations({ redis: harness.target, prefix, cluster: "default" });
  onTestFinished(() => mutations.close());
  return async () => {
    const name = `one-${randomUUID()}`;
    const metadata = { namespace: "default", name };
    await server.client.create<Widget>(Widgets, { metadata, spec: {} });
    await workflows.start(release, undefined);
    const { group, version, kind, resource } = ConfigMap;
    await mutations.submit([
      {
        id: name,
        object: { group, version, kind, resource, ...metadata },
        changes: [{ kind: "set", path: "/data/seen", value: "yes" }],
        createIfMissing: true,
      },
    ]);
    const body = JSON.stringify({ name });
    const signature = createHmac("sha256", SECRET).update(body).digest("hex");
    await fetch(`${api.url}/v1/inbound/github`, {
      method: "POST",
      body,
      headers: { "content-type": "application/json", "x-hub-signature-256": `sha256=${signature}` },
    });
  };
}

/** As Grafana fills them in: one installation, and all clusters and controllers. */
function fill(expression: string): string {
  return expression
    .replaceAll("$installation", prefix)
    .replaceAll(/\$(?:cluster|controller)/g, ".*")
    .replaceAll("$__rate_interval", "5m");
}

test("no panel is empty for a worker and an API that have work", async (context) => {
  const promql = await openPromql();
  if ("missing" in promql) return context.skip(promql.missing);
  const queries = grafanaDashboard().panels.flatMap(({ title, targets = [] }) =>
    targets.map(({ expr }) => ({ title, expr: fill(expr) })),
  );
  expect(queries.filter(({ expr }) => expr.includes("$"))).toEqual([]);
  const processes = await startProcesses();
  const act = openActivity(processes);
  const scrapes = new Map<string, Scrape[]>([
    [processes.worker.metricsUrl, []],
    [`${processes.api.url}/metrics`, []],
  ]);
  let empty: string[] = [];
  const look = async () => {
    await act();
    for (const [url, kept] of scrapes) kept.push(parseScrape(await (await fetch(url)).text()));
    const series = [...scrapes].flatMap(([url, kept]) => seriesOf(kept.slice(-2), 60, url));
    // NaN differs from itself.
    const counts = queries.map(({ expr }) => `count((${expr}) == (${expr}))`);
    const answers = await promql.evaluate(series, counts);
    empty = queries
      .filter((_, at) => answers[at]?.length !== 1)
      .map(({ title, expr }) => `${title}: ${expr}`);
    return empty.length === 0;
  };
  await until("every query has values", look).catch(() => expect(empty).toEqual([]));
});
