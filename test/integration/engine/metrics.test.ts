import { readFileSync } from "node:fs";
import { readSettings } from "@konverge/contracts";
import type { ResourceType } from "@konverge/core";
import { defineConfig, startWorkerProcess, webhook, type WorkerProcess } from "@konverge/worker";
import { defineController, poll } from "@konverge/engine";
import { ConfigMap } from "@konverge/kube/kinds";
import { defineWorkflow, openWorkflows } from "@konverge/workflow";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { startEmbeddedServer, type EmbeddedServer } from "../kube/embedded-server.ts";
import { installWidgets, type Widget } from "../kube/kube-servers.ts";
import { useQueues } from "../queue/queue-harness.ts";
import { alertGroups, BACKLOG_AGE_QUERY } from "../../../apps/cli/src/manifests/alert-rules.ts";
import { until } from "../../support/until.ts";
import { withoutHome } from "../../support/without-home.ts";

const harness = useQueues();
let server: EmbeddedServer;
let worker: WorkerProcess;
let Widgets: ResourceType<Widget>;
let runs = 0;
const prefix = `metrics-${process.pid}`;
const rollout = defineWorkflow("rollout", { version: 1 }, async (w, fails: boolean) => {
  await w.step("pull", () => 1);
  await w.signal("approve");
  await w.step(
    "push",
    () => {
      if (fails) throw new Error("broken on purpose");
    },
    { retry: { attempts: 1 } },
  );
});

const warnings: string[] = [];
const onWarning = (warning: Error) => warnings.push(String(warning));

beforeAll(async () => {
  process.on("warning", onWarning);
  server = await startEmbeddedServer();
  Widgets = await installWidgets(server.client, "metrics.test.konverge.dev");
  const widgets = defineController({
    name: "widgets",
    for: Widgets,
    slo: { threshold: "30s", objective: 0.99 },
    sources: [
      poll({
        name: "list",
        every: 1_000,
        list: () => ["one"],
        key: (name) => ({ namespace: "default", name }),
      }),
    ],
    reconcile: async ({ object, kube }) => {
      runs += 1;
      await kube.mutateStatus(object, (draft) => {
        draft.status["seen"] = true;
      });
    },
  });
  const observer = defineController({
    name: "observer",
    for: Widgets,
    mode: "observe",
    reconcile: async () => undefined,
  });
  const settings = readSettings({
    env: {
      KONVERGE_REDIS_URL: harness.url,
      KONVERGE_PREFIX: prefix,
      KONVERGE_KUBECONFIG: server.kubeconfig,
      KONVERGE_METRICS_PORT: "0",
      KONVERGE_LOG_LEVEL: "silent",
    },
  });
  worker = await startWorkerProcess({
    config: defineConfig({
      controllers: [widgets, observer],
      workflows: [rollout],
      mutations: { kinds: [ConfigMap] },
      limits: { mail: { rate: 1 } },
      // Receives nothing: no run is blocked here.
      notify: [{ on: ["run_blocked"], to: webhook("http://127.0.0.1:1/", { format: "json" }) }],
    }),
    settings,
    version: "1.2.3",
  });
});
afterAll(async () => {
  await worker?.stop();
  await server?.[Symbol.asyncDispose]();
});

/** The labels that docs/metrics.md states once. */
const HOME = ["cluster", "installation"];

/** Name and other labels of every series, without the suffixes of metric types. */
async function served(): Promise<Map<string, string>> {
  const text = await (await fetch(worker.metricsUrl)).text();
  const kinds = new Map(
    [...text.matchAll(/^# TYPE (\w+) (\w+)/gm)].map(([, name, kind]) => [name, kind]),
  );
  const series = [...text.matchAll(/^(\w+)(?:\{(.*)\})? \S+$/gm)].map(
    ([, sample = "", labels = ""]) => {
      const base = sample.replace(/_(?:bucket|sum|count)$/, "");
      const name = kinds.get(base) === "histogram" ? base : sample;
      const names = [...labels.matchAll(/(\w+)="/g)].map(([, label = ""]) => label);
      return [
        name,
        names.filter((label) => label !== "le" && !HOME.includes(label)).join(),
      ] as const;
    },
  );
  return new Map([
    ...[...kinds.keys()].map((name) => [name ?? "", "no series"] as const),
    ...series,
  ]);
}

function documented(): Map<string, string> {
  const rows = readFileSync("docs/metrics.md", "utf8").matchAll(
    /^\| `(konverge_\w+)(?:\{([\w,]+)\})?`/gm,
  );
  return new Map([...rows].map(([, name = "", labels = ""]) => [name, labels]));
}

test("serves exactly the metrics and labels of docs/metrics.md", async () => {
  await server.client.create(Widgets, {
    metadata: { namespace: "default", name: "one" },
    spec: {},
  });
  const wanted = documented();
  // Only the API has series of them.
  for (const name of [
    "inbound_deliveries_total",
    "audit_stream_lag_seconds",
    "audit_entries_lost_total",
  ]) {
    wanted.set(`konverge_${name}`, "no series");
  }
  expect(wanted.size).toBeGreaterThan(20);
  let found = new Map<string, string>();
  await until("the worker leads and has reconciled", async () => {
    found = await served();
    const last = [
      "konverge_workqueue_depth",
      "konverge_requests_total",
      "konverge_source_lag_seconds",
      "konverge_notifications_total",
      "konverge_drifted_objects",
    ];
    return last.every((name) => found.get(name) !== "no series");
  });
  const own = [...found].filter(([name]) => !/^(?:process|nodejs)_/.test(name));
  expect(Object.fromEntries(own)).toEqual(Object.fromEntries(wanted));
});

test("every series has the installation, and all but those of the process the cluster", async () => {
  const text = await (await fetch(worker.metricsUrl)).text();
  const own = ["konverge_build_info", "konverge_api_rejected_requests_total"];
  for (const [, name = "", labels = ""] of text.matchAll(/^(\w+)(?:\{(.*)\})? \S+$/gm)) {
    expect(labels, name).toContain(`installation="${prefix}"`);
    const isOfProcess = !name.startsWith("konverge_") || own.includes(name);
    expect(labels.includes('cluster="default"'), name).toBe(!isOfProcess);
  }
});

test("alerts and autoscaling use existing series and labels", async () => {
  const groups = alertGroups({ installation: prefix, clusters: ["default"], runbooks: "" });
  const expressions = [
    BACKLOG_AGE_QUERY,
    ...groups.flatMap(({ rules }) => rules.map(({ expr }) => expr)),
  ];
  const own = await served();
  const labelsOf = documented();
  for (const expression of expressions) {
    const asked = [...expression.matchAll(/(konverge_\w+)(?:\{(.*?)\})?/g)];
    expect(asked, expression).not.toEqual([]);
    const labels = asked.flatMap(([, name = "", matchers = ""]) => {
      const base = name.replace(/_bucket$/, "");
      expect([...own.keys()]).toContain(base);
      const has = [...(labelsOf.get(base) ?? "").split(","), ...HOME];
      for (const [, label] of matchers.matchAll(/(\w+)\s*[=!]/g)) expect(has).toContain(label);
      return has;
    });
    for (const [, list = ""] of expression.matchAll(/by \((.*?)\)/g)) {
      for (const label of list.split(",").map((text) => text.trim())) {
        expect([...labels, "le"]).toContain(label);
      }
    }
  }
});

test("counts runs by status and measures durations; no label has the name of a run or step", async () => {
  const workflows = openWorkflows({ redis: harness.target, prefix });
  onTestFinished(() => workflows.close());
  await workflows.start(rollout, false, { id: "waits" });
  for (const [id, fails] of [
    ["passes", false],
    ["breaks", true],
  ] as const) {
    await workflows.start(rollout, fails, { id });
    await workflows.signal({ workflow: "rollout", id }, "approve");
  }
  const wanted = [
    'konverge_workflow_runs{workflow="rollout",status="waiting"} 1',
    'konverge_workflow_runs{workflow="rollout",status="done"} 1',
    'konverge_workflow_runs{workflow="rollout",status="failed"} 1',
    'konverge_workflow_runs{workflow="rollout",status="blocked"} 0',
    'konverge_workflow_executions_total{workflow="rollout",result="done"} 1',
    'konverge_workflow_executions_total{workflow="rollout",result="failed"} 1',
    'konverge_workflow_executions_total{workflow="rollout",result="blocked"} 0',
    'konverge_workflow_step_failures_total{workflow="rollout",kind="step"} 1',
    'konverge_workflow_step_seconds_count{workflow="rollout",kind="step"} 5',
    'konverge_workflow_wait_seconds_count{workflow="rollout",kind="signal"} 2',
  ];
  let text = "";
  await until("all is counted", async () => {
    text = withoutHome(await (await fetch(worker.metricsUrl)).text());
    return wanted.every((line) => text.includes(`${line}\n`));
  }).catch(() => {
    const lines = text.split("\n").filter((line) => line.startsWith("konverge_workflow"));
    expect(lines).toEqual(expect.arrayContaining(wanted));
  });
  expect(text).not.toMatch(/="(?:waits|passes|breaks|pull|push|approve)"/);
});

test("counts attempts and calls; no label has the name of an object", async () => {
  const text = await until("every run is counted", async () => {
    const body = withoutHome(await (await fetch(worker.metricsUrl)).text());
    const counted = `konverge_reconcile_total{controller="widgets",result="success"} ${runs}\n`;
    return runs > 0 && body.includes(counted) ? body : undefined;
  });
  for (const line of [
    'konverge_writes_total{controller="widgets"} 1',
    `konverge_reconcile_noop_total{controller="widgets"} ${runs - 1}`,
    'konverge_reconcile_errors_total{controller="widgets"} 0',
    'konverge_leader_election_master_status{name="widgets"} 1',
    'konverge_active_workers{controller="widgets"} 0',
    'konverge_workqueue_depth{name="widgets",controller="widgets"} 0',
  ]) {
    expect(text).toContain(`${line}\n`);
  }
  expect(text).toMatch(
    /konverge_requests_total\{controller="widgets",trigger="(?:signal|watch|resync)",coalesced="false"\} \d/,
  );
  expect(text).toMatch(
    /rest_client_requests_total\{code="200",method="PATCH",host="[^"]+:\d+"\} \d/,
  );
  expect(text).not.toMatch(/="(?:default\/)?one"/);
});

test("a worker causes no warnings of Node", () => {
  process.off("warning", onWarning);
  expect(warnings).toEqual([]);
});
