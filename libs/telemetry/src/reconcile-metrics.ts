import { CONVERGENCE_CAUSES, type ConvergenceCause, type OutcomeKind } from "@konverge/core";
import { Counter, Gauge, Histogram, type Registry } from "prom-client";
import { createSloMetrics, type Objective, type SloEvent } from "./slo-metrics.ts";
import { RunningAttempts, type ControllerLabels } from "./running-attempts.ts";

/** The counted values of a finished attempt. */
export interface AttemptMetrics {
  readonly controller: string;
  readonly outcome: OutcomeKind;
  readonly durationMs: number;
  readonly queueMs: number;
  readonly rateLimitMs: number;
  readonly laneMs: number;
  /** The time from the oldest request to the end by cause, in ms; undefined unless the attempt succeeded. */
  readonly convergence: Readonly<Record<ConvergenceCause, number>> | undefined;
  /** Undefined if the controller has no objective, or the attempt does not count. */
  readonly slo: SloEvent | undefined;
  readonly conflicts: number;
  readonly writes: number;
  readonly apiCalls: number;
  /** True if the job is retried because of this attempt. */
  readonly retried: boolean;
  /** True if the handler exceeded its timeout. */
  readonly timedOut: boolean;
  /** True if another attempt took over, so that nothing of this one was stored. */
  readonly fenced: boolean;
}

export interface ReconcileMetrics {
  /**
   * Creates every series of a controller with the value 0, so that the first event is an increase. Returns the function that
   * subtracts its attempts again.
   */
  addController(
    controller: string,
    limits: {
      /** Concurrent attempts that this process allows. */
      readonly concurrency: number;
      /** The longest time of an attempt. */
      readonly timeoutMs: number;
      readonly slo?: Objective | undefined;
    },
  ): () => void;
  /** Ends the gauges of the cluster's controllers. */
  forgetControllers(): void;
  /** `attempt`: an object that identifies the attempt. */
  attemptStarted(controller: string, attempt: object): void;
  /** The handler returned, or the attempt ended without it. */
  attemptEnded(attempt: object): void;
  /** An attempt was lost with its worker. */
  attemptLost(controller: string): void;
  /** The end of the attempt was stored or rejected. */
  attemptFinished(attempt: AttemptMetrics): void;
}

/** The `result` label of controller-runtime, so that alerts for it keep working. */
function resultOf(outcome: OutcomeKind): string {
  switch (outcome) {
    case "done":
    case "awaitChange":
    case "awaitApproval":
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

/** The buckets of controller-runtime, so that the `le` values of its dashboards exist. */
const RECONCILE_SECONDS = [
  0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1,
  1.25, 1.5, 1.75, 2, 2.5, 3, 3.5, 4, 4.5, 5, 6, 7, 8, 9, 10, 15, 20, 25, 30, 40, 50, 60,
];
/** controller-runtime's powers of ten from 1 ms, the precision of clocks over a network, and some values between. */
const QUEUE_SECONDS = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 60, 100, 1_000];

/** Counters by controller: name and help. */
const COUNTERS = {
  errors: ["reconcile_errors_total", "Total number of failed attempts."],
  terminal: [
    "terminal_reconcile_errors_total",
    "Total number of attempts that failed permanently.",
  ],
  timeouts: ["reconcile_timeouts_total", "Total number of attempts over their timeout."],
  fenced: ["reconcile_fenced_total", "Total number of attempts superseded before they ended."],
  lost: ["reconcile_lost_total", "Total number of attempts lost with their worker."],
  noops: ["reconcile_noop_total", "Total number of successful attempts without a write."],
  conflicts: ["conflicts_total", "Total number of conflicts."],
  writes: ["writes_total", "Total number of writes that changed an object."],
  calls: ["attempt_api_calls_total", "Total number of API calls of attempts."],
  limiter: [
    "rate_limiter_wait_seconds_total",
    "Total wait for connections and tokens, in seconds.",
  ],
  lane: ["lane_wait_seconds_total", "Total wait in object lanes, in seconds."],
} as const;

type Counters = Readonly<Record<keyof typeof COUNTERS, Counter<"cluster" | "controller">>>;

function createCounters(registry: Registry): Counters {
  const entries = Object.entries(COUNTERS).map(([key, [name, help]]) => {
    const labelNames = ["cluster", "controller"] as const;
    return [
      key,
      new Counter({ name: `konverge_${name}`, help, labelNames, registers: [registry] }),
    ];
  });
  return Object.fromEntries(entries) as Counters;
}

function createHistograms(registry: Registry) {
  const registers = [registry];
  const ofQueue = (name: string, help: string) =>
    new Histogram({
      name: `konverge_workqueue_${name}`,
      help,
      labelNames: ["cluster", "name", "controller"],
      buckets: QUEUE_SECONDS,
      registers,
    });
  const duration = new Histogram({
    name: "konverge_reconcile_time_seconds",
    help: "Duration of an attempt.",
    labelNames: ["cluster", "controller"],
    buckets: RECONCILE_SECONDS,
    registers,
  });
  const queueing = ofQueue("queue_duration_seconds", "Time from request to attempt.");
  const working = ofQueue(
    "work_duration_seconds",
    "Duration of the handler, by this process's clock.",
  );
  return { duration, queueing, working };
}

/** The metrics of attempts in a process: those of controller-runtime and client-go's workqueue, and our own. */
export function createReconcileMetrics(registry: Registry): (cluster: string) => ReconcileMetrics {
  const registers = [registry];
  const running = new RunningAttempts(registry);
  const counters = createCounters(registry);
  const { duration, queueing, working } = createHistograms(registry);
  const reconciles = new Counter({
    name: "konverge_reconcile_total",
    help: "Total number of attempts by result.",
    labelNames: ["cluster", "controller", "result"],
    registers,
  });
  const convergence = createConvergence(registry);
  const slo = createSloMetrics(registry);
  const retries = new Counter({
    name: "konverge_workqueue_retries_total",
    help: "Total number of retried jobs.",
    labelNames: ["cluster", "controller", "name"],
    registers,
  });
  const maxConcurrent = new Gauge({
    name: "konverge_max_concurrent_reconciles",
    help: "Concurrent attempts that this process allows.",
    labelNames: ["cluster", "controller"],
    registers,
  });
  const timeout = new Gauge({
    name: "konverge_reconcile_timeout_seconds",
    help: "Timeout of an attempt.",
    labelNames: ["cluster", "controller"],
    registers,
  });

  return (cluster) => {
    const at = (controller: string) => ({ cluster, controller });
    const byQueue = (controller: string) => ({ cluster, name: controller, controller });
    return {
      addController(controller, { concurrency, timeoutMs, slo: objective }) {
        running.addController(at(controller));
        maxConcurrent.inc(at(controller), concurrency);
        timeout.set(at(controller), timeoutMs / 1_000);
        for (const result of RESULTS) reconciles.inc({ ...at(controller), result }, 0);
        for (const counter of Object.values(counters)) counter.inc(at(controller), 0);
        retries.inc(byQueue(controller), 0);
        convergence.zero(at(controller));
        if (objective !== undefined) slo.zero(at(controller), objective);
        duration.zero(at(controller));
        queueing.zero(byQueue(controller));
        working.zero(byQueue(controller));
        return () => maxConcurrent.dec(at(controller), concurrency);
      },
      forgetControllers: () => running.forgetCluster(cluster),
      attemptStarted: (controller, attempt) => running.started(at(controller), attempt),
      attemptEnded(attempt) {
        const ended = running.ended(attempt);
        if (ended !== undefined) working.observe(byQueue(ended.controller), ended.seconds);
      },
      attemptLost: (controller) => counters.lost.inc(at(controller)),
      attemptFinished(attempt) {
        const { controller, outcome } = attempt;
        const result = resultOf(outcome);
        reconciles.inc({ ...at(controller), result });
        countAttempt(counters, at(controller), attempt, result);
        if (attempt.convergence !== undefined && !attempt.fenced) {
          convergence.observe(at(controller), attempt.convergence);
        }
        if (attempt.slo !== undefined && !attempt.fenced) slo.observe(at(controller), attempt);
        if (attempt.retried) retries.inc(byQueue(controller));
        duration.observe(at(controller), attempt.durationMs / 1_000);
        queueing.observe(byQueue(controller), attempt.queueMs / 1_000);
      },
    };
  };
}

/** The time from a change to success, and its parts by cause. */
function createConvergence(registry: Registry) {
  const registers = [registry];
  const seconds = new Histogram({
    name: "konverge_convergence_seconds",
    help: "Time from the oldest request to the end of a successful attempt.",
    labelNames: ["cluster", "controller"],
    buckets: QUEUE_SECONDS,
    registers,
  });
  const byCause = new Counter({
    name: "konverge_convergence_cause_seconds_total",
    help: "Total time from requests to success by cause, in seconds.",
    labelNames: ["cluster", "controller", "cause"],
    registers,
  });
  return {
    zero(at: ControllerLabels): void {
      seconds.zero(at);
      for (const cause of CONVERGENCE_CAUSES) byCause.inc({ ...at, cause }, 0);
    },
    observe(at: ControllerLabels, parts: Readonly<Record<ConvergenceCause, number>>): void {
      let sumMs = 0;
      for (const cause of CONVERGENCE_CAUSES) {
        sumMs += parts[cause];
        if (parts[cause] > 0) byCause.inc({ ...at, cause }, parts[cause] / 1_000);
      }
      seconds.observe(at, sumMs / 1_000);
    },
  };
}

function countAttempt(
  counters: Counters,
  at: ControllerLabels,
  attempt: AttemptMetrics,
  result: string,
): void {
  const { outcome } = attempt;
  if (result === "error") counters.errors.inc(at);
  if (outcome === "terminal") counters.terminal.inc(at);
  if (attempt.timedOut) counters.timeouts.inc(at);
  if (attempt.fenced) counters.fenced.inc(at);
  if (attempt.writes > 0) counters.writes.inc(at, attempt.writes);
  else if (result === "success" || result === "requeue_after") counters.noops.inc(at);
  if (attempt.conflicts > 0) counters.conflicts.inc(at, attempt.conflicts);
  if (attempt.apiCalls > 0) counters.calls.inc(at, attempt.apiCalls);
  if (attempt.rateLimitMs > 0) counters.limiter.inc(at, attempt.rateLimitMs / 1_000);
  if (attempt.laneMs > 0) counters.lane.inc(at, attempt.laneMs / 1_000);
}
