import type { BreakerMode } from "@konverge/core";
import { Counter, Gauge, type Registry } from "prom-client";

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

/** Reads a guard at each scrape, until what it returns is called. */
export type ObserveGuard = (cluster: string, read: () => GuardMetrics) => () => void;

/** The metrics of the guards of one process, one a cluster. */
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
    help: "1 for the state in which this process sees the circuit breaker.",
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
  gauge("rate", "Calls per second that the fleet may send now.", (guard) => guard.ratePerSecond);
  gauge("waiting_calls", "Calls that wait for a token.", (guard) => guard.waiting);
  gauge("calls_in_flight", "Calls under way.", (guard) => guard.inFlight);
  counter("redis_round_trips_total", "Asks of this process for tokens.", (guard) => guard.asks);
  counter("permits_total", "Calls that were let through.", (guard) => guard.permits);
  counter("deferred_total", "Calls that were not sent.", (guard) => guard.deferred);
  return (cluster, read) => {
    guards.set(cluster, read);
    return () => {
      if (guards.get(cluster) === read) guards.delete(cluster);
    };
  };
}
