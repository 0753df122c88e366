import type { OutcomeKind } from "@konverge/core";
import { Counter, Gauge, Histogram, type Registry } from "prom-client";

/** One finished attempt, as counted. */
export interface AttemptMetrics {
  readonly controller: string;
  readonly outcome: OutcomeKind;
  readonly durationMs: number;
  readonly queueMs: number;
  readonly rateLimitMs: number;
  readonly laneMs: number;
  readonly conflicts: number;
  readonly writes: number;
  readonly apiCalls: number;
  /** True when the job is tried again because of this attempt. */
  readonly retried: boolean;
  /** True when the handler ran longer than its controller allows. */
  readonly timedOut: boolean;
  /** True when another attempt had taken over, so that nothing of this one was stored. */
  readonly fenced: boolean;
}

export interface ReconcileMetrics {
  /** Makes every series of a controller exist at 0, so that the first event is an increase. */
  addController(controller: string, maxConcurrent: number): void;
  /** `attempt`: any object that no other attempt has. */
  attemptStarted(controller: string, attempt: object): void;
  /** The handler has returned, or was left behind. */
  attemptEnded(attempt: object): void;
  /** An attempt was found that never ended. */
  attemptLost(controller: string): void;
  /** The end is stored, or was refused. */
  attemptFinished(attempt: AttemptMetrics): void;
}

/** controller-runtime's `result` label, so that alerts written for it carry over. */
function resultOf(outcome: OutcomeKind): string {
  switch (outcome) {
    case "done":
    case "awaitChange":
    case "gone":
      return "success";
    case "requeueAfter":
      return "requeue_after";
    case "conflict":
    case "deferred":
    case "cancelled":
      return "requeue";
    case "retry":
    case "rejected":
    case "terminal":
      return "error";
  }
}

const RESULTS = ["success", "requeue_after", "requeue", "error"];

/** controller-runtime's, so that its dashboards' `le` values exist. */
const RECONCILE_SECONDS = [
  0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1,
  1.25, 1.5, 1.75, 2, 2.5, 3, 3.5, 4, 4.5, 5, 6, 7, 8, 9, 10, 15, 20, 25, 30, 40, 50, 60,
];
/** Its powers of ten from 1 ms on, which is what clocks over a network can tell, and some between. */
const QUEUE_SECONDS = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 60, 100, 1_000];

/** What controller-runtime and client-go's workqueue count of the attempts of a process, and what we add. */
export function createReconcileMetrics(registry: Registry): ReconcileMetrics {
  const registers = [registry];
  const running = new Map<object, { readonly controller: string; readonly startedMs: number }>();
  const controllers = new Set<string>();
  const counter = <Label extends string>(name: string, help: string, ...labels: Label[]) =>
    new Counter({
      name: `konverge_${name}`,
      help,
      labelNames: ["controller", ...labels],
      registers,
    });
  const queueHistogram = (name: string, help: string) =>
    new Histogram({
      name: `konverge_workqueue_${name}`,
      help,
      labelNames: ["name", "controller"],
      buckets: QUEUE_SECONDS,
      registers,
    });
  /** Of the running attempts of each controller, by their age in seconds at the scrape. */
  const runningGauge = (
    name: string,
    help: string,
    labels: (controller: string) => Record<string, string>,
    merge: (value: number, ageSeconds: number) => number,
  ) =>
    new Gauge({
      name: `konverge_${name}`,
      help,
      labelNames: Object.keys(labels("")),
      registers,
      collect() {
        const nowMs = performance.now();
        const values = new Map([...controllers].map((controller) => [controller, 0]));
        for (const { controller, startedMs } of running.values()) {
          const value = values.get(controller) ?? 0;
          values.set(controller, merge(value, (nowMs - startedMs) / 1_000));
        }
        for (const [controller, value] of values) this.set(labels(controller), value);
      },
    });
  const byQueue = (controller: string) => ({ name: controller, controller });

  const reconciles = counter("reconcile_total", "Total number of attempts by result.", "result");
  const errors = counter("reconcile_errors_total", "Total number of failed attempts.");
  const terminal = counter(
    "terminal_reconcile_errors_total",
    "Total number of attempts that failed permanently.",
  );
  const timeouts = counter(
    "reconcile_timeouts_total",
    "Total number of attempts over their timeout.",
  );
  const fenced = counter(
    "reconcile_fenced_total",
    "Total number of attempts superseded before they ended.",
  );
  const lost = counter("reconcile_lost_total", "Total number of attempts lost with their worker.");
  const noops = counter(
    "reconcile_noop_total",
    "Total number of successful attempts without a write.",
  );
  const conflicts = counter("conflicts_total", "Total number of conflicts.");
  const writes = counter("writes_total", "Total number of writes that changed an object.");
  const calls = counter("attempt_api_calls_total", "Total number of API calls of attempts.");
  const limiter = counter(
    "rate_limiter_wait_seconds_total",
    "Total wait for connections and tokens, in seconds.",
  );
  const lane = counter("lane_wait_seconds_total", "Total wait in object lanes, in seconds.");
  const retries = counter("workqueue_retries_total", "Total number of retried jobs.", "name");
  const duration = new Histogram({
    name: "konverge_reconcile_time_seconds",
    help: "Duration of an attempt.",
    labelNames: ["controller"],
    buckets: RECONCILE_SECONDS,
    registers,
  });
  const queueing = queueHistogram("queue_duration_seconds", "Time from request to attempt.");
  const working = queueHistogram(
    "work_duration_seconds",
    "Duration of the handler, by this process's clock.",
  );
  const maxConcurrent = new Gauge({
    name: "konverge_max_concurrent_reconciles",
    help: "Concurrent attempts that this process allows.",
    labelNames: ["controller"],
    registers,
  });
  runningGauge(
    "active_workers",
    "Number of running attempts.",
    (controller) => ({ controller }),
    (value) => value + 1,
  );
  runningGauge(
    "workqueue_unfinished_work_seconds",
    "Sum of the ages of running attempts.",
    byQueue,
    (value, age) => value + age,
  );
  runningGauge(
    "workqueue_longest_running_processor_seconds",
    "Age of the oldest running attempt.",
    byQueue,
    Math.max,
  );

  return {
    addController(controller, max) {
      controllers.add(controller);
      maxConcurrent.set({ controller }, max);
      for (const result of RESULTS) reconciles.inc({ controller, result }, 0);
      for (const each of [errors, terminal, timeouts, fenced, lost, noops, conflicts, writes]) {
        each.inc({ controller }, 0);
      }
      for (const each of [calls, limiter, lane]) each.inc({ controller }, 0);
      retries.inc(byQueue(controller), 0);
      duration.zero({ controller });
      queueing.zero(byQueue(controller));
      working.zero(byQueue(controller));
    },
    attemptStarted(controller, attempt) {
      running.set(attempt, { controller, startedMs: performance.now() });
    },
    attemptEnded(attempt) {
      const started = running.get(attempt);
      if (started === undefined) return;
      running.delete(attempt);
      const seconds = (performance.now() - started.startedMs) / 1_000;
      working.observe(byQueue(started.controller), seconds);
    },
    attemptLost(controller) {
      lost.inc({ controller });
    },
    attemptFinished(attempt) {
      const { controller, outcome } = attempt;
      const result = resultOf(outcome);
      reconciles.inc({ controller, result });
      if (result === "error") errors.inc({ controller });
      if (outcome === "terminal") terminal.inc({ controller });
      if (attempt.timedOut) timeouts.inc({ controller });
      if (attempt.fenced) fenced.inc({ controller });
      if (attempt.writes > 0) writes.inc({ controller }, attempt.writes);
      else if (result === "success" || result === "requeue_after") noops.inc({ controller });
      if (attempt.conflicts > 0) conflicts.inc({ controller }, attempt.conflicts);
      if (attempt.apiCalls > 0) calls.inc({ controller }, attempt.apiCalls);
      if (attempt.rateLimitMs > 0) limiter.inc({ controller }, attempt.rateLimitMs / 1_000);
      if (attempt.laneMs > 0) lane.inc({ controller }, attempt.laneMs / 1_000);
      if (attempt.retried) retries.inc(byQueue(controller));
      duration.observe({ controller }, attempt.durationMs / 1_000);
      queueing.observe(byQueue(controller), attempt.queueMs / 1_000);
    },
  };
}
