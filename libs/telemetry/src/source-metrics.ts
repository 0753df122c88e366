import { Counter, Gauge, type Registry } from "prom-client";
import { Observed } from "./observed.ts";

/** A source of a controller, as labels. */
export interface SourceLabels {
  readonly controller: string;
  readonly source: string;
}

/** The state of a source at a scrape. */
interface SourceState {
  /** How far the source is behind, in ms. */
  readonly lagMs: number;
  /** Consecutive failures. */
  readonly failures: number;
}

/** The metrics of sources besides watches. */
export interface SourceMetrics {
  /** Counts objects that a source has requested. */
  sourceRequested(source: SourceLabels, objects: number): void;
  /** Counts one call of `list` or `map`, or one acknowledgement or failure of a stream. */
  sourceRan(source: SourceLabels, result: "success" | "error"): void;
  /** Reports the state of a source at each scrape. Returns the function that ends it. */
  observeSource(source: SourceLabels, state: () => SourceState): () => void;
}

export function createSourceMetrics(registry: Registry): (cluster: string) => SourceMetrics {
  const registers = [registry];
  const labelNames = ["cluster", "controller", "source"] as const;
  const requests = new Counter({
    name: "konverge_source_requests_total",
    help: "Total number of objects that sources requested.",
    labelNames,
    registers,
  });
  const runs = new Counter({
    name: "konverge_source_runs_total",
    help: "Total number of polls, acknowledgements of streams and mapped deliveries by result.",
    labelNames: [...labelNames, "result"],
    registers,
  });
  const observed = new Observed<{
    readonly labels: SourceLabels;
    readonly state: () => SourceState;
  }>();
  const collect = (
    gauge: Gauge<(typeof labelNames)[number]>,
    of: (state: SourceState) => number,
  ) => {
    gauge.reset();
    for (const [{ cluster }, each] of observed) {
      for (const { labels, state } of each) gauge.set({ cluster, ...labels }, of(state()));
    }
  };
  const lag: Gauge<(typeof labelNames)[number]> = new Gauge({
    name: "konverge_source_lag_seconds",
    help: "Age of the oldest event that is not requested; for polls, of the last complete list.",
    labelNames,
    registers,
    collect: () => collect(lag, ({ lagMs }) => lagMs / 1_000),
  });
  const failures: Gauge<(typeof labelNames)[number]> = new Gauge({
    name: "konverge_source_failures",
    help: "Consecutive failures of the source.",
    labelNames,
    registers,
    collect: () => collect(failures, (state) => state.failures),
  });
  return (cluster) => ({
    sourceRequested(source, objects) {
      requests.inc({ cluster, ...source }, objects);
    },
    sourceRan(source, result) {
      runs.inc({ cluster, ...source, result });
    },
    observeSource(labels, state) {
      requests.inc({ cluster, ...labels }, 0);
      for (const result of ["success", "error"]) runs.inc({ cluster, ...labels, result }, 0);
      return observed.add(
        { cluster, name: `${labels.controller}/${labels.source}` },
        { labels, state },
      );
    },
  });
}
