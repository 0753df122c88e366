import { labelsOf, type Installation, type Manifest } from "./manifest.ts";

interface Query {
  readonly expr: string;
  /** Template of Grafana for the name of a series. */
  readonly legend: string;
}

interface Panel {
  readonly title: string;
  readonly unit: "s" | "ops" | "bytes" | "percentunit" | "short";
  readonly queries: readonly Query[];
}

/** Selects the series of the chosen installation and clusters, and those that match `more`. */
function of(metric: string, more = ""): string {
  const rest = more === "" ? "" : `,${more}`;
  return `konverge_${metric}{installation="$installation",cluster=~"$cluster"${rest}}`;
}

const CONTROLLER = 'controller=~"$controller"';
const INTERVAL = "$__rate_interval";

/** Selects the series that belong to no cluster. */
function ofInstallation(metric: string): string {
  return `konverge_${metric}{installation="$installation"}`;
}

/** Each aggregation keeps the cluster. */
function aggregate(operator: "max" | "min" | "sum", series: string, labels: readonly string[]) {
  return `${operator} by (${["cluster", ...labels].join(", ")}) (${series})`;
}

function legendOf(labels: readonly string[], name = ""): string {
  const parts = ["cluster", ...labels].map((label) => `{{${label}}}`);
  return [...parts, ...(name === "" ? [] : [name])].join(" ");
}

function max(series: string, labels: readonly string[] = [], name = ""): Query {
  return { expr: aggregate("max", series, labels), legend: legendOf(labels, name) };
}

function sum(series: string, labels: readonly string[] = [], name = ""): Query {
  return { expr: aggregate("sum", series, labels), legend: legendOf(labels, name) };
}

/** Increases per second, over all processes. */
function rate(series: string, labels: readonly string[] = [], name = ""): Query {
  return sum(`rate(${series}[${INTERVAL}])`, labels, name);
}

/** The median and the 99th percentile of a histogram. */
function quantiles(histogram: string, labels: readonly string[] = [], more = ""): Query[] {
  const buckets = rate(of(`${histogram}_bucket`, more), [...labels, "le"]).expr;
  return [0.5, 0.99].map((share) => ({
    expr: `histogram_quantile(${share}, ${buckets})`,
    legend: legendOf(labels, `p${share * 100}`),
  }));
}

/** The mean time from a change to its success, split by cause. */
function meanByCause(): Query {
  const causes = rate(of("convergence_cause_seconds_total", CONTROLLER), ["controller", "cause"]);
  const successes = rate(of("convergence_seconds_count", CONTROLLER), ["controller"]);
  return {
    expr: `${causes.expr} / on (cluster, controller) group_left () ${successes.expr}`,
    legend: causes.legend,
  };
}

/** The share of the changes that were within the threshold. */
function shareWithinThreshold(): Query {
  const good = rate(of("slo_events_total", `result="good",${CONTROLLER}`), ["controller"]);
  const all = rate(of("slo_events_total", CONTROLLER), ["controller"]);
  return { expr: `${good.expr} / ${all.expr}`, legend: good.legend };
}

/** A status code has no series before its first response, so 0 is the default. */
function responses(code: string): Query {
  const found = rate(of("rest_client_requests_total", `code="${code}"`), [], code);
  const none = `0 * ${rate(of("rest_client_requests_total")).expr}`;
  return { expr: `${found.expr} or ${none}`, legend: found.legend };
}

const one = (title: string, unit: Panel["unit"], ...queries: readonly Query[]): Panel => ({
  title,
  unit,
  queries,
});

/** A gauge of the queue, which one process reports for all workers. */
const ofQueue = (name: string) => max(of(`workqueue_${name}`, CONTROLLER), ["controller"]);

/** Increases per second of a number in Redis, which every worker reports. */
const ofMutations = (name: string, labels: readonly string[], legend = "") =>
  max(`rate(${of(name)}[${INTERVAL}])`, labels, legend);

/** The panels by row. */
const ROWS: Readonly<Record<string, readonly Panel[]>> = {
  Overview: [
    one(
      "Reconciles by outcome",
      "ops",
      rate(of("reconcile_total", CONTROLLER), ["controller", "result"]),
    ),
    one("Waiting keys", "short", ofQueue("depth")),
    one("Age of the key at the queue head", "s", ofQueue("head_age_seconds")),
    one("Age of the first waiting change", "s", ofQueue("change_age_seconds")),
    one("Dead-lettered keys", "short", ofQueue("dead_lettered")),
    one("Paused keys with requests", "short", ofQueue("paused")),
  ],
  Controllers: [
    one(
      "Duration of attempts",
      "s",
      ...quantiles("reconcile_time_seconds", ["controller"], CONTROLLER),
    ),
    one("Time to agreement", "s", ...quantiles("convergence_seconds", ["controller"], CONTROLLER)),
    one("Mean time to agreement by cause", "s", meanByCause()),
    one(
      "Time in the queue",
      "s",
      ...quantiles("workqueue_queue_duration_seconds", ["controller"], CONTROLLER),
    ),
    one("Conflicts", "ops", rate(of("conflicts_total", CONTROLLER), ["controller"])),
    one("Failed attempts", "ops", rate(of("reconcile_errors_total", CONTROLLER), ["controller"])),
  ],
  "Service levels": [
    one(
      "Changes within the threshold",
      "percentunit",
      shareWithinThreshold(),
      max(of("slo_objective", CONTROLLER), ["controller"], "objective"),
    ),
    one(
      "Time of late changes by cause",
      "s",
      rate(of("slo_bad_cause_seconds_total", CONTROLLER), ["controller", "cause"]),
    ),
    one(
      "Late changes",
      "ops",
      rate(of("slo_events_total", `result="bad",${CONTROLLER}`), ["controller"]),
    ),
  ],
  "API server": [
    one("Calls by status code", "ops", rate(of("rest_client_requests_total"), ["code"])),
    one("Responses 429", "ops", responses("429")),
    one("Duration of calls", "s", ...quantiles("rest_client_request_duration_seconds", ["verb"])),
    one("State of the circuit breaker", "short", max(of("guard_breaker_state"), ["state"])),
    one(
      "Calls and the rate limit",
      "ops",
      max(of("guard_rate"), [], "limit"),
      rate(of("guard_admitted_calls_total"), [], "admitted"),
      rate(of("guard_deferred_calls_total"), [], "deferred"),
    ),
    one("Calls that wait for a token", "short", sum(of("guard_waiting_calls"))),
  ],
  Redis: [
    one("Memory", "bytes", max(of("redis_memory_bytes"), ["kind"])),
    one("Replicas", "short", max(of("redis_replicas"))),
    one("Replica lag", "bytes", max(of("redis_replica_lag_bytes"))),
  ],
  Workers: [
    one(
      "Workers by role",
      "short",
      sum(of("worker_info"), ["role"]),
      sum(of("worker_ready"), ["role"], "ready"),
    ),
    one(
      "Leaders by controller",
      "short",
      sum(of("leader_election_master_status", 'name=~"$controller"'), ["name"]),
    ),
    one(
      "Attempts and slots",
      "short",
      sum(of("active_workers", CONTROLLER), ["controller"], "running"),
      sum(of("max_concurrent_reconciles", CONTROLLER), ["controller"], "slots"),
    ),
  ],
  Workflows: [
    one("Runs by status", "short", max(of("workflow_runs"), ["workflow", "status"])),
    one(
      "Executions by result",
      "ops",
      rate(of("workflow_executions_total"), ["workflow", "result"]),
    ),
    one("Duration of executions", "s", ...quantiles("workflow_execution_seconds", ["workflow"])),
    one("Failed steps", "ops", rate(of("workflow_step_failures_total"), ["workflow", "kind"])),
  ],
  Sources: [
    one(
      "Requested objects",
      "ops",
      rate(of("source_requests_total", CONTROLLER), ["controller", "source"]),
    ),
    one("Lag", "s", max(of("source_lag_seconds", CONTROLLER), ["controller", "source"])),
    one(
      "Consecutive failures",
      "short",
      max(of("source_failures", CONTROLLER), ["controller", "source"]),
    ),
    one(
      "Inbound deliveries by result",
      "ops",
      rate(of("inbound_deliveries_total"), ["source", "result"]),
    ),
  ],
  Mutations: [
    one(
      "Accepted and ended mutations",
      "ops",
      ofMutations("mutations_accepted_total", [], "accepted"),
      ofMutations("mutations_ended_total", ["outcome"]),
    ),
    one("Mutations that have not ended", "short", max(of("mutations_waiting"))),
    one("Time from submission to write", "s", ...quantiles("mutation_duration_seconds")),
    one("Mutations per write", "short", ...quantiles("mutation_batch_size")),
    one(
      "Conflicts and failed attempts of mutations",
      "ops",
      rate(of("mutation_conflicts_total"), [], "conflicts"),
      rate(of("mutation_failed_attempts_total"), [], "failed attempts"),
    ),
  ],
  Notifications: [
    one("Notifications by result", "ops", rate(of("notifications_total"), ["receiver", "result"])),
    one("Waiting notifications", "short", sum(of("notifications_waiting"), ["receiver"])),
    one(
      "Age of the failing notification",
      "s",
      max(of("notification_failing_seconds"), ["receiver"]),
    ),
  ],
  "Audit log": [
    one("Age of the oldest undelivered entry", "s", {
      expr: `max by (sink) (${ofInstallation("audit_stream_lag_seconds")})`,
      legend: "{{sink}}",
    }),
    one("Entries removed before their delivery", "short", {
      expr: `max by (sink) (${ofInstallation("audit_entries_lost_total")})`,
      legend: "{{sink}}",
    }),
  ],
};

const DATASOURCE = { type: "prometheus", uid: "${datasource}" };

/** The width of Grafana's grid, and the size of a panel in it. */
const GRID = { columns: 24, width: 8, height: 8 };

interface Placed {
  readonly title: string;
  readonly type: string;
  readonly targets?: readonly { readonly expr: string }[];
  readonly [field: string]: unknown;
}

/** A dashboard of Grafana. */
export interface Dashboard {
  readonly panels: readonly Placed[];
  readonly [field: string]: unknown;
}

/** Returns the dashboard of all installations, clusters and controllers, which are its variables. */
export function grafanaDashboard(): Dashboard {
  return {
    uid: "konverge",
    title: "Konverge",
    tags: ["konverge"],
    schemaVersion: 39,
    editable: true,
    refresh: "30s",
    time: { from: "now-1h", to: "now" },
    templating: { list: variables() },
    panels: placePanels(),
  };
}

function variables(): object[] {
  const query = (name: string, series: string) => ({
    name,
    label: name,
    type: "query",
    datasource: DATASOURCE,
    query: { query: `label_values(${series}, ${name})`, refId: name },
    // Also when the time range changes.
    refresh: 2,
    sort: 1,
  });
  const several = { multi: true, includeAll: true, allValue: ".*" };
  const all = { current: { selected: true, text: ["All"], value: ["$__all"] } };
  const installation = 'installation="$installation"';
  return [
    { name: "datasource", label: "data source", type: "datasource", query: "prometheus" },
    query("installation", "konverge_worker_info"),
    { ...query("cluster", `konverge_worker_info{${installation}}`), ...several, ...all },
    { ...query("controller", of("reconcile_total")), ...several, ...all },
  ];
}

function placePanels(): Placed[] {
  const placed: Placed[] = [];
  let y = 0;
  for (const [row, panels] of Object.entries(ROWS)) {
    placed.push({
      id: placed.length + 1,
      type: "row",
      title: row,
      collapsed: false,
      gridPos: { x: 0, y, w: GRID.columns, h: 1 },
      panels: [],
    });
    y += 1;
    for (const [at, panel] of panels.entries()) {
      const x = (at * GRID.width) % GRID.columns;
      if (x === 0 && at > 0) y += GRID.height;
      const gridPos = { x, y, w: GRID.width, h: GRID.height };
      placed.push({ id: placed.length + 1, ...timeSeries(panel), gridPos });
    }
    y += GRID.height;
  }
  return placed;
}

function timeSeries({ title, unit, queries }: Panel) {
  return {
    type: "timeseries",
    title,
    datasource: DATASOURCE,
    fieldConfig: { defaults: { unit, min: 0 }, overrides: [] },
    options: { legend: { displayMode: "list", placement: "bottom" }, tooltip: { mode: "multi" } },
    targets: queries.map(({ expr, legend }, at) => ({
      refId: String.fromCodePoint(65 + at),
      datasource: DATASOURCE,
      expr,
      legendFormat: legend,
    })),
  };
}

/** Returns the text of the dashboard file. */
export function dashboardText(): string {
  return `${JSON.stringify(grafanaDashboard(), null, 2)}\n`;
}

/** Returns the ConfigMap from which the sidecar of Grafana's chart loads the dashboard. */
export function dashboardConfigMap(installation: Installation): Manifest {
  return {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: {
      name: `${installation.name}-dashboard`,
      namespace: installation.namespace,
      labels: { ...labelsOf(installation), grafana_dashboard: "1" },
    },
    data: { "konverge.json": dashboardText() },
  };
}
