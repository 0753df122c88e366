import { Gauge, type Registry } from "prom-client";

type Merge = (value: number, ageSeconds: number) => number;

/** The running attempts of each controller, with gauges of their number and age at the scrape. */
export class RunningAttempts {
  readonly #registry: Registry;
  readonly #controllers = new Set<string>();
  readonly #running = new Map<
    object,
    { readonly controller: string; readonly startedMs: number }
  >();

  constructor(registry: Registry) {
    this.#registry = registry;
    const byQueue = (controller: string) => ({ name: controller, controller });
    this.#addGauge(
      { name: "active_workers", help: "Number of running attempts." },
      (controller) => ({ controller }),
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

  addController(controller: string): void {
    this.#controllers.add(controller);
  }

  started(controller: string, attempt: object): void {
    this.#running.set(attempt, { controller, startedMs: performance.now() });
  }

  ended(attempt: object): { readonly controller: string; readonly seconds: number } | undefined {
    const started = this.#running.get(attempt);
    if (started === undefined) return undefined;
    this.#running.delete(attempt);
    const seconds = (performance.now() - started.startedMs) / 1_000;
    return { controller: started.controller, seconds };
  }

  #addGauge(
    { name, help }: { readonly name: string; readonly help: string },
    labels: (controller: string) => Record<string, string>,
    merge: Merge,
  ): void {
    const gauge: Gauge = new Gauge({
      name: `konverge_${name}`,
      help,
      labelNames: Object.keys(labels("")),
      registers: [this.#registry],
      collect: () => {
        for (const [controller, value] of this.#merged(merge)) gauge.set(labels(controller), value);
      },
    });
  }

  #merged(merge: Merge): ReadonlyMap<string, number> {
    const nowMs = performance.now();
    const values = new Map([...this.#controllers].map((controller) => [controller, 0]));
    for (const { controller, startedMs } of this.#running.values()) {
      const value = values.get(controller) ?? 0;
      values.set(controller, merge(value, (nowMs - startedMs) / 1_000));
    }
    return values;
  }
}
