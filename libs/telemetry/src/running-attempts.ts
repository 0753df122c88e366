import { Gauge, type Registry } from "prom-client";

/** A controller on one cluster. */
export interface ControllerLabels {
  readonly cluster: string;
  readonly controller: string;
}

type Merge = (value: number, ageSeconds: number) => number;

function idOf({ cluster, controller }: ControllerLabels): string {
  return JSON.stringify([cluster, controller]);
}

/** The running attempts of each controller, with gauges of their number and age at the scrape. */
export class RunningAttempts {
  readonly #registry: Registry;
  readonly #controllers = new Map<string, ControllerLabels>();
  readonly #running = new Map<
    object,
    { readonly of: ControllerLabels; readonly startedMs: number }
  >();

  constructor(registry: Registry) {
    this.#registry = registry;
    const byQueue = ({ cluster, controller }: ControllerLabels) => ({
      cluster,
      name: controller,
      controller,
    });
    this.#addGauge(
      { name: "active_workers", help: "Number of running attempts." },
      (of) => ({ ...of }),
      (value) => value + 1,
    );
    this.#addGauge(
      {
        name: "workqueue_unfinished_work_seconds",
        help: "Sum of the ages of running attempts.",
      },
      byQueue,
      (value, age) => value + age,
    );
    this.#addGauge(
      {
        name: "workqueue_longest_running_processor_seconds",
        help: "Age of the oldest running attempt.",
      },
      byQueue,
      Math.max,
    );
  }

  addController(of: ControllerLabels): void {
    this.#controllers.set(idOf(of), of);
  }

  forgetCluster(cluster: string): void {
    for (const [id, of] of this.#controllers)
      if (of.cluster === cluster) this.#controllers.delete(id);
  }

  started(of: ControllerLabels, attempt: object): void {
    this.#running.set(attempt, { of, startedMs: performance.now() });
  }

  ended(attempt: object): { readonly controller: string; readonly seconds: number } | undefined {
    const started = this.#running.get(attempt);
    if (started === undefined) return undefined;
    this.#running.delete(attempt);
    const seconds = (performance.now() - started.startedMs) / 1_000;
    return { controller: started.of.controller, seconds };
  }

  #addGauge(
    { name, help }: { readonly name: string; readonly help: string },
    labels: (of: ControllerLabels) => Record<string, string>,
    merge: Merge,
  ): void {
    const gauge: Gauge = new Gauge({
      name: `konverge_${name}`,
      help,
      labelNames: Object.keys(labels({ cluster: "", controller: "" })),
      registers: [this.#registry],
      collect: () => {
        const merged = this.#merged(merge);
        for (const [id, of] of this.#controllers) gauge.set(labels(of), merged.get(id) ?? 0);
      },
    });
  }

  #merged(merge: Merge): ReadonlyMap<string, number> {
    const nowMs = performance.now();
    const values = new Map<string, number>();
    for (const { of, startedMs } of this.#running.values()) {
      const id = idOf(of);
      const value = values.get(id) ?? 0;
      values.set(id, merge(value, (nowMs - startedMs) / 1_000));
    }
    return values;
  }
}
