import type { BreakerMode } from "@konverge/core";
import { Counter, Gauge, type Registry } from "prom-client";

/** One process's view of a guard. Counts since the start of the process. */
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

/** Reads a guard at each scrape, until the returned function is called. */
export type ObserveGuard = (cluster: string, read: () => GuardMetrics) => () => void;

/** The metrics of the guards of one process, one per cluster. */
export function createGuardMetrics(registry: Registry): ObserveGuard {
  const registers = [registry];
  const guards = new Map<string, () => GuardMetrics>();
  const gauge = (name: string, help: string, value: (guard: GuardMetrics) => number) =>
    new Gauge({
      name: `konverge_guard_${name}`,
      help,
      labelNames: ["cluster"],
      registers,
      collect() {
        this.reset();
        for (const [cluster, read] of guards) this.set({ cluster }, value(read()));
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
        for (const [cluster, read] of guards) this.inc({ cluster }, value(read()));
      },
    });
  const states: Gauge<"cluster" | "state"> = new Gauge({
    name: "konverge_guard_breaker_state",
    help: "1 for the current state of the circuit breaker, as this process sees it.",
    labelNames: ["cluster", "state"],
    registers,
    collect() {
      states.reset();
      for (const [cluster, read] of guards) {
        const { mode } = read();
        for (const state of BREAKER_MODES) states.set({ cluster, state }, state === mode ? 1 : 0);
      }
    },
  });
  gauge(
    "rate",
    "Current rate limit of all workers, in calls per second.",
    (guard) => guard.ratePerSecond,
  );
  gauge("waiting_calls", "Number of calls that wait for a token.", (guard) => guard.waiting);
  gauge("calls_in_flight", "Number of calls in flight.", (guard) => guard.inFlight);
  counter(
    "redis_round_trips_total",
    "Total number of token requests sent to Redis.",
    (guard) => guard.asks,
  );
  counter("admitted_calls_total", "Total number of admitted API calls.", (guard) => guard.permits);
  counter("deferred_calls_total", "Total number of deferred API calls.", (guard) => guard.deferred);
  return (cluster, read) => {
    guards.set(cluster, read);
    return () => {
      if (guards.get(cluster) === read) guards.delete(cluster);
    };
  };
}
