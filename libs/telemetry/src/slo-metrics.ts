import { CONVERGENCE_CAUSES, type ConvergenceCause } from "@konverge/core";
import { Counter, Gauge, type Registry } from "prom-client";
import type { ControllerLabels } from "./running-attempts.ts";

/** The end of a change: within the threshold of the service level objective, or not. */
export type SloEvent = "good" | "bad";

/** The service level objective of a controller. */
export interface Objective {
  readonly thresholdMs: number;
  readonly objective: number;
}

interface SloMetrics {
  /** Creates the series of a controller. */
  zero(at: ControllerLabels, of: Objective): void;
  observe(
    at: ControllerLabels,
    end: {
      readonly slo: SloEvent | undefined;
      readonly convergence: Readonly<Record<ConvergenceCause, number>> | undefined;
    },
  ): void;
}

/** Changes by whether they were within the objective, and the time of the others by cause. */
export function createSloMetrics(registry: Registry): SloMetrics {
  const registers = [registry];
  const labelNames = ["cluster", "controller"] as const;
  const events = new Counter({
    name: "konverge_slo_events_total",
    help: "Total number of changes by whether they were reconciled within the threshold.",
    labelNames: [...labelNames, "result"],
    registers,
  });
  const byCause = new Counter({
    name: "konverge_slo_bad_cause_seconds_total",
    help: "Total time of changes beyond the threshold by cause, in seconds.",
    labelNames: [...labelNames, "cause"],
    registers,
  });
  const objective = new Gauge({
    name: "konverge_slo_objective",
    help: "Share of the changes that must be reconciled within the threshold.",
    labelNames,
    registers,
  });
  const threshold = new Gauge({
    name: "konverge_slo_threshold_seconds",
    help: "Longest time from a change to success.",
    labelNames,
    registers,
  });
  return {
    zero(at, of) {
      for (const result of ["good", "bad"]) events.inc({ ...at, result }, 0);
      for (const cause of CONVERGENCE_CAUSES) byCause.inc({ ...at, cause }, 0);
      objective.set(at, of.objective);
      threshold.set(at, of.thresholdMs / 1_000);
    },
    observe(at, { slo, convergence }) {
      if (slo === undefined) return;
      events.inc({ ...at, result: slo });
      if (slo === "good" || convergence === undefined) return;
      for (const cause of CONVERGENCE_CAUSES) {
        if (convergence[cause] > 0) byCause.inc({ ...at, cause }, convergence[cause] / 1_000);
      }
    },
  };
}
