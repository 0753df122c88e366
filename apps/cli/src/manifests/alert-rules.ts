import { defined } from "@konverge/core";

interface AlertRule {
  readonly alert: string;
  readonly expr: string;
  readonly for?: string;
  readonly labels: { readonly severity: "critical" | "warning" | "info" };
  readonly annotations: { readonly summary: string; readonly runbook_url: string };
}

export interface AlertGroup {
  readonly name: string;
  readonly rules: readonly AlertRule[];
}

/** Replaced by the prefix of the installation, the name of a cluster, and the address of the runbooks. */
const PLACEHOLDERS = {
  installation: "INSTALLATION",
  cluster: "CLUSTER",
  runbooks: "RUNBOOKS",
} as const;

/** Labels that every alert keeps, so that two installations or clusters never share an alert. */
const HOME = "installation, cluster";

/** Selects the series of the installation, and those that match `more`. */
function of(metric: string, more = ""): string {
  const rest = more === "" ? "" : `,${more}`;
  return `konverge_${metric}{installation="${PLACEHOLDERS.installation}"${rest}}`;
}

function max(series: string, ...labels: readonly string[]): string {
  return `max by (${[HOME, ...labels].join(", ")}) (${series})`;
}

function sum(series: string, ...labels: readonly string[]): string {
  return `sum by (${[HOME, ...labels].join(", ")}) (${series})`;
}

function unless(...causes: readonly string[]): string {
  return causes.map((cause) => ` unless on (${HOME}) (${cause})`).join("");
}

/** Without calls to the API server, there is no leader and no work. KonvergeApiServerProtected reports this state. */
const PROTECTED = `${max(of("guard_breaker_state", 'state=~"open|halfOpen|isolated"'))} == 1`;
const REDIS_UP = `${max(of("redis_up"))} == 1`;
/** True if workers exist and none of them can use Redis. */
const REDIS_AWAY = `${max(of("worker_info"))} unless on (${HOME}) (${REDIS_UP})`;
/** With a full Redis, no calls are admitted and leaders resign. KonvergeRedisFull reports this state. */
const REDIS_FULL = memoryAbove(0.99);
const WORKS = 'role=~"all|work"';

function memoryAbove(share: number): string {
  const kind = (name: string) => max(of("redis_memory_bytes", `kind="${name}"`));
  return `${kind("used")} / ${kind("max")} > ${share}`;
}

function increases(metric: string, more: string, label: string): string {
  return `${sum(`increase(${of(metric, more)}[1h])`, label)} > 0`;
}

/** Late changes below this number do not alert: a restart delays a few, also of a controller with few changes. */
const FEWEST_BAD = 5;

/**
 * True if the error budget of 30 days is used `factor` times as fast as it lasts, over a long window, and still over a short one
 * (Google SRE Workbook, "Alerting on SLOs").
 */
function burns(factor: number, long: string, short: string): string {
  const bad = of("slo_events_total", 'result="bad"');
  const share = (window: string) =>
    `${sum(`rate(${bad}[${window}])`, "controller")} / ${sum(`rate(${of("slo_events_total")}[${window}])`, "controller")}`;
  const budget = `on (${HOME}, controller) ${factor} * (1 - ${max(of("slo_objective"), "controller")})`;
  const isEnough = `${sum(`increase(${bad}[${long}])`, "controller")} >= ${FEWEST_BAD}`;
  return `(${share(long)} > ${budget} and ${share(short)} > ${budget} and ${isEnough})`;
}

interface Definition {
  readonly severity: AlertRule["labels"]["severity"];
  readonly summary: string;
  readonly expr: string;
  readonly for?: string;
}

const BACKED_UP = `${max(of("workqueue_change_age_seconds"), "controller")} > 60`;
const TIMEOUT = max(of("reconcile_timeout_seconds"), "controller");

/** The rules of an installation. The summaries are templates of Prometheus. */
const RULES: Readonly<Record<string, Definition>> = {
  KonvergeNoWorker: {
    severity: "critical",
    summary: "No worker takes jobs on cluster {{ $labels.cluster }}",
    expr: `${max(of("worker_info"))} unless on (${HOME}) (${max(of("worker_info", WORKS))})`,
    for: "2m",
  },
  KonvergeNotReady: {
    severity: "critical",
    summary: "No worker is ready on cluster {{ $labels.cluster }}",
    expr: `${max(of("worker_ready", WORKS))} == 0${unless(PROTECTED, REDIS_AWAY, REDIS_FULL)}`,
    for: "5m",
  },
  KonvergeNoLeader: {
    severity: "critical",
    summary:
      "{{ $labels.name }} has no leader on cluster {{ $labels.cluster }}, so changes are not observed",
    expr: `${sum(of("leader_election_master_status"), "name")} == 0${unless(PROTECTED, REDIS_AWAY, REDIS_FULL)}`,
    for: "2m",
  },
  KonvergeRedisUnavailable: {
    severity: "critical",
    summary: "No worker of cluster {{ $labels.cluster }} can use Redis",
    expr: REDIS_AWAY,
    for: "1m",
  },
  KonvergeRestoreHeld: {
    severity: "critical",
    summary: "Redis of cluster {{ $labels.cluster }} was restored, and {{ $labels.kind }} are held",
    expr: `${max(of("restore_held", 'kind!="none"'), "kind")} == 1`,
    for: "1m",
  },
  KonvergeRedisFull: {
    severity: "critical",
    summary: "Redis of cluster {{ $labels.cluster }} uses over 90 % of maxmemory",
    expr: memoryAbove(0.9),
    for: "5m",
  },
  KonvergeRedisMemory: {
    severity: "warning",
    summary: "Redis of cluster {{ $labels.cluster }} uses over 80 % of maxmemory",
    expr: memoryAbove(0.8),
    for: "10m",
  },
  KonvergeReplicaLost: {
    severity: "warning",
    summary: "Redis of cluster {{ $labels.cluster }} has fewer replicas than in the last day",
    expr: `${max(of("redis_replicas"))} < ${max(`max_over_time(${of("redis_replicas")}[1d])`)}`,
    for: "15m",
  },
  KonvergeReplicaLag: {
    severity: "warning",
    summary: "A Redis replica of cluster {{ $labels.cluster }} is over 16 MiB behind",
    expr: `${max(of("redis_replica_lag_bytes"))} > 16777216`,
    for: "5m",
  },
  KonvergeClockSkew: {
    severity: "warning",
    summary:
      "The clock of a worker of cluster {{ $labels.cluster }} differs from Redis by over 2 s",
    expr: `${max(`abs(${of("redis_clock_ahead_seconds")})`)} > 2`,
    for: "5m",
  },
  KonvergeApiServerProtected: {
    severity: "warning",
    summary: "The circuit breaker of cluster {{ $labels.cluster }} is {{ $labels.state }}",
    expr: `${max(of("guard_breaker_state", 'state=~"open|isolated"'), "state")} == 1`,
    for: "2m",
  },
  KonvergeBacklog: {
    severity: "warning",
    summary: "Changes for {{ $labels.controller }} wait for over a minute",
    expr: `${BACKED_UP}${unless(PROTECTED)}`,
    for: "10m",
  },
  KonvergeFailing: {
    severity: "warning",
    summary: "Over 10 % of the attempts of {{ $labels.controller }} fail",
    expr: `${sum(`rate(${of("reconcile_errors_total")}[10m])`, "controller")} / ${sum(`rate(${of("reconcile_total")}[10m])`, "controller")} > 0.1`,
    for: "10m",
  },
  KonvergeSloFastBurn: {
    severity: "critical",
    summary: "Changes of {{ $labels.controller }} are late; the error budget lasts a few days",
    expr: `(${burns(14.4, "1h", "5m")} or ${burns(6, "6h", "30m")})${unless(PROTECTED)}`,
  },
  KonvergeSloSlowBurn: {
    severity: "warning",
    summary: "Changes of {{ $labels.controller }} are late; the error budget does not last 30 days",
    expr: `(${burns(3, "1d", "2h")} or ${burns(1, "3d", "6h")})${unless(PROTECTED)}`,
  },
  KonvergeDeadLetters: {
    severity: "warning",
    summary: "{{ $value }} keys of {{ $labels.controller }} are dead-lettered",
    expr: `${max(of("workqueue_dead_lettered"), "controller")} > 0`,
    for: "5m",
  },
  KonvergePausedKeys: {
    severity: "info",
    summary: "{{ $value }} requested keys of {{ $labels.controller }} have been paused for a day",
    expr: `${max(of("workqueue_paused"), "controller")} > 0`,
    for: "1d",
  },
  KonvergeReconcileLoops: {
    severity: "warning",
    summary: "Objects of {{ $labels.controller }} are in a reconcile loop",
    expr: `${sum(`increase(${of("reconcile_loops_total")}[1h])`, "controller", "kind")} > 0`,
  },
  KonvergeAttemptTooLong: {
    severity: "warning",
    summary: "An attempt of {{ $labels.controller }} exceeds its timeout by over a minute",
    expr: `${max(of("workqueue_longest_running_processor_seconds"), "controller")} > on (${HOME}, controller) (${TIMEOUT} + 60)`,
  },
  KonvergeRunsBlocked: {
    severity: "warning",
    summary: "{{ $value }} runs of {{ $labels.workflow }} are blocked",
    expr: `${max(of("workflow_runs", 'status="blocked"'), "workflow")} > 0`,
    for: "5m",
  },
  KonvergeRunsFailing: {
    severity: "warning",
    summary: "Runs of {{ $labels.workflow }} fail",
    expr: increases("workflow_executions_total", 'result="failed"', "workflow"),
  },
  KonvergeNotifyFailing: {
    severity: "warning",
    summary: "Notifications to {{ $labels.receiver }} are not delivered",
    expr: `${max(of("notification_failing_seconds"), "receiver")} > 300 or ${increases("notifications_total", 'result="failed"', "receiver")}`,
  },
  KonvergeAuditNotDelivered: {
    severity: "warning",
    summary: "Entries of the audit log are not delivered to the {{ $labels.sink }}",
    expr: `${max(of("audit_stream_lag_seconds"), "sink")} > 300 or ${increases("audit_entries_lost_total", "", "sink")}`,
    for: "5m",
  },
  KonvergeMapErrors: {
    severity: "warning",
    summary:
      "A map function of {{ $labels.controller }} fails, so changes of watched objects are skipped",
    expr: increases("watch_function_errors_total", 'function="map"', "controller"),
  },
  KonvergeSourceFailing: {
    severity: "warning",
    summary: "Source {{ $labels.source }} of {{ $labels.controller }} fails repeatedly",
    expr: `${max(of("source_failures"), "controller", "source")} >= 3`,
    for: "5m",
  },
  KonvergeWatchInterruptions: {
    severity: "warning",
    summary:
      "Watches of {{ $labels.resource }} are often interrupted on cluster {{ $labels.cluster }}",
    expr: `${max(`increase(${of("watch_interruptions_total")}[10m])`, "resource")} > 20`,
  },
};

/** The rule of a named cluster. Without workers, a cluster has no series, so the rule must contain its name. */
const CLUSTER_RULES: Readonly<Record<string, Definition>> = {
  KonvergeNoWorker: {
    severity: "critical",
    summary: "No worker takes jobs on cluster {{ $labels.cluster }}",
    expr: `absent(${of("worker_info", `cluster="${PLACEHOLDERS.cluster}",${WORKS}`)})`,
    for: "2m",
  },
};

/** Returns the groups with placeholders: that of an installation, and that of a named cluster. */
export function alertTemplates(): {
  readonly installation: AlertGroup;
  readonly cluster: AlertGroup;
} {
  return {
    installation: { name: `konverge-${PLACEHOLDERS.installation}`, rules: rulesOf(RULES) },
    cluster: {
      name: `konverge-${PLACEHOLDERS.installation}-${PLACEHOLDERS.cluster}`,
      rules: rulesOf(CLUSTER_RULES),
    },
  };
}

function rulesOf(definitions: Readonly<Record<string, Definition>>): AlertRule[] {
  return Object.entries(definitions).map(([alert, { severity, summary, expr, for: lasts }]) => ({
    alert,
    expr,
    ...defined({ for: lasts }),
    labels: { severity },
    annotations: { summary, runbook_url: `${PLACEHOLDERS.runbooks}/${alert}.md` },
  }));
}

export interface AlertTarget {
  /** The prefix of the installation in Redis. */
  readonly installation: string;
  /** The named clusters; those of a provider are found in the series. */
  readonly clusters: readonly string[];
  /** Address of the folder with the runbooks. */
  readonly runbooks: string;
}

/** Default address of the runbooks, also in the chart. It is not published yet. */
export const RUNBOOKS = "https://konverge.dev/docs/runbooks";

/** Returns the alert rules of one installation, which ignore the series of all others. */
export function alertGroups({ installation, clusters, runbooks }: AlertTarget): AlertGroup[] {
  const { installation: all, cluster: each } = alertTemplates();
  const fill = (group: AlertGroup, cluster = "") =>
    JSON.parse(
      JSON.stringify(group)
        .replaceAll(PLACEHOLDERS.installation, installation)
        .replaceAll(PLACEHOLDERS.cluster, cluster)
        .replaceAll(PLACEHOLDERS.runbooks, runbooks),
    ) as AlertGroup;
  return [fill(all), ...clusters.map((cluster) => fill(each, cluster))];
}

/**
 * The waiting time of changes, which grows while workers are missing. Requests of resyncs are left out, so a new leader adds no
 * workers. A cluster whose API server is protected is left out, because more workers would not help it.
 */
export const BACKLOG_AGE_QUERY: string = `max(${max(of("workqueue_change_age_seconds"))}${unless(
  `${max(of("guard_breaker_state", 'state=~"open|isolated"'))} == 1`,
)})`;
