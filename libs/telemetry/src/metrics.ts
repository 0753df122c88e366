import type { BreakerMode, OutcomeKind } from "@konverge/core";
import { Counter, Gauge, Histogram, Registry } from "prom-client";

/** One finished attempt, as counted. */
export interface AttemptMetrics {
  readonly controller: string;
  readonly outcome: OutcomeKind;
  readonly durationMs: number;
  readonly queueMs: number;
  readonly limiterMs: number;
  readonly laneMs: number;
  readonly conflicts: number;
  readonly writes: number;
  readonly apiCalls: number;
  /** True when the job is tried again because of this attempt. */
  readonly retried: boolean;
}

/** A guard as one process sees it. Counts since its start. */
export interface GuardMetrics {
  readonly mode: BreakerMode;
  readonly ratePerSecond: number;
  readonly waiting: number;
  readonly inFlight: number;
  readonly asks: number;
  readonly permits: number;
  readonly deferred: number;
}

const BREAKER_MODES: readonly BreakerMode[] = ["closed", "open", "halfOpen", "isolated"];

export interface Metrics {
  readonly contentType: string;
  attemptStarted(controller: string): void;
  attemptFinished(attempt: AttemptMetrics): void;
  /** One API call, by what it was and how it ended; code 0 means no answer. */
  apiCall(call: { readonly verb: string; readonly code: number; readonly seconds: number }): void;
  /** Reads a guard at each scrape. */
  observeGuard(cluster: string, read: () => GuardMetrics): void;
  /** The text that Prometheus reads. */
  text(): Promise<string>;
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

const SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];

/**
 * The metrics of one process, in a registry of its own. Names are controller-runtime's and client-go's behind
 * `konverge_` (docs/metrics.md maps them). Never an object name as a label.
 */
export function createMetrics(options: { readonly version: string }): Metrics {
  const registry = new Registry();
  const registers = [registry];
  const perController = <Label extends string>(name: string, help: string, ...labels: Label[]) =>
    new Counter({
      name: `konverge_${name}`,
      help,
      labelNames: ["controller", ...labels],
      registers,
    });
  const histogram = (name: string, help: string, label: string) =>
    new Histogram({
      name: `konverge_${name}`,
      help,
      labelNames: [label],
      buckets: SECONDS,
      registers,
    });

  const reconciles = perController("reconcile_total", "Attempts by result.", "result");
  const errors = perController("reconcile_errors_total", "Attempts that failed.");
  const terminal = perController(
    "terminal_reconcile_errors_total",
    "Attempts that ended for good.",
  );
  const conflicts = perController("conflicts_total", "Writes that lost a race.");
  const writes = perController("writes_total", "Writes that changed an object.");
  const retries = perController("workqueue_retries_total", "Jobs tried again.");
  const calls = perController("attempt_api_calls_total", "API calls made by attempts.");
  const limiter = perController(
    "rate_limiter_wait_seconds_total",
    "Time that attempts waited for tokens.",
  );
  const lane = perController(
    "lane_wait_seconds_total",
    "Time that attempts waited for their turn to write an object.",
  );
  const duration = histogram("reconcile_time_seconds", "Duration of an attempt.", "controller");
  const queueing = histogram(
    "workqueue_queue_duration_seconds",
    "From request to attempt.",
    "controller",
  );
  const active = new Gauge({
    name: "konverge_active_workers",
    help: "Attempts running now.",
    labelNames: ["controller"],
    registers,
  });
  const requests = new Counter({
    name: "konverge_rest_client_requests_total",
    help: "API calls by verb and code; code 0 means no answer.",
    labelNames: ["verb", "code"],
    registers,
  });
  const requestSeconds = histogram(
    "rest_client_request_duration_seconds",
    "Duration of an API call.",
    "verb",
  );
  new Gauge({
    name: "konverge_build_info",
    help: "Always 1; the version is the label.",
    labelNames: ["version"],
    registers,
  }).set({ version: options.version }, 1);

  return {
    contentType: registry.contentType,
    attemptStarted: (controller) => active.inc({ controller }),
    attemptFinished: (attempt) => {
      const { controller, outcome } = attempt;
      const result = resultOf(outcome);
      active.dec({ controller });
      reconciles.inc({ controller, result });
      if (result === "error") errors.inc({ controller });
      if (outcome === "terminal") terminal.inc({ controller });
      conflicts.inc({ controller }, attempt.conflicts);
      writes.inc({ controller }, attempt.writes);
      calls.inc({ controller }, attempt.apiCalls);
      limiter.inc({ controller }, attempt.limiterMs / 1_000);
      lane.inc({ controller }, attempt.laneMs / 1_000);
      retries.inc({ controller }, attempt.retried ? 1 : 0);
      duration.observe({ controller }, attempt.durationMs / 1_000);
      queueing.observe({ controller }, attempt.queueMs / 1_000);
    },
    apiCall: ({ verb, code, seconds }) => {
      requests.inc({ verb, code: String(code) });
      requestSeconds.observe({ verb }, seconds);
    },
    observeGuard(cluster, read) {
      const gauge = (name: string, help: string, value: (guard: GuardMetrics) => number) =>
        new Gauge({
          name: `konverge_guard_${name}`,
          help,
          labelNames: ["cluster"],
          registers,
          collect() {
            this.set({ cluster }, value(read()));
          },
        });
      const counter = (name: string, help: string, value: (guard: GuardMetrics) => number) =>
        new Counter({
          name: `konverge_guard_${name}`,
          help,
          labelNames: ["cluster"],
          registers,
          collect() {
            this.reset();
            this.inc({ cluster }, value(read()));
          },
        });
      const states: Gauge<"cluster" | "state"> = new Gauge({
        name: "konverge_guard_breaker_state",
        help: "1 for the state in which this process sees the circuit breaker.",
        labelNames: ["cluster", "state"],
        registers,
        collect() {
          const { mode } = read();
          for (const state of BREAKER_MODES) states.set({ cluster, state }, state === mode ? 1 : 0);
        },
      });
      gauge(
        "rate",
        "Calls per second that the fleet may send now.",
        (guard) => guard.ratePerSecond,
      );
      gauge("waiting_calls", "Calls that wait for a token.", (guard) => guard.waiting);
      gauge("calls_in_flight", "Calls under way.", (guard) => guard.inFlight);
      counter("redis_round_trips_total", "Asks of this process for tokens.", (guard) => guard.asks);
      counter("permits_total", "Calls that were let through.", (guard) => guard.permits);
      counter("deferred_total", "Calls that were not sent.", (guard) => guard.deferred);
    },
    text: () => registry.metrics(),
  };
}
