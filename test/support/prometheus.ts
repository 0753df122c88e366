import type { AlertGroup } from "../../apps/cli/src/manifests/alert-rules.ts";
import { labelsOf, type Promql, type Scrape, type Series } from "./promql.ts";

/** An alert that fires: its name and the values of its labels. */
export interface Alert {
  readonly alert: string;
  readonly installation: string;
  readonly cluster: string;
}

interface TimedScrape {
  readonly atSeconds: number;
  readonly scrape: Scrape;
}

/**
 * Scrapes of processes with times that the caller sets, and the alerts that fire at the last one. The series of a process
 * without a scrape end, as after the exit of a target.
 */
export class Prometheus {
  readonly #promql: Promql;
  readonly #groups: readonly AlertGroup[];
  #nowSeconds = 0;
  #scrapes = new Map<string, readonly TimedScrape[]>();
  /** By alert and labels: the time since which the expression holds. */
  #since = new Map<string, number>();

  constructor(promql: Promql, groups: readonly AlertGroup[]) {
    this.#promql = promql;
    this.#groups = groups;
  }

  /** Adds a scrape per process, `seconds` after the last ones, and returns the alerts that fire. */
  async take(seconds: number, scrapes: ReadonlyMap<string, Scrape>): Promise<Alert[]> {
    this.#nowSeconds += seconds;
    const atSeconds = this.#nowSeconds;
    this.#scrapes = new Map(
      [...scrapes].map(([instance, scrape]) => [
        instance,
        [...(this.#scrapes.get(instance) ?? []), { atSeconds, scrape }],
      ]),
    );
    return await this.#evaluate();
  }

  /** Returns the values of an expression at the last scrape. */
  async values(expression: string): Promise<number[]> {
    const [samples = []] = await this.#promql.evaluate(this.#series(), [expression]);
    return samples.map(({ value }) => value);
  }

  #series(): Series[] {
    return [...this.#scrapes].flatMap(([instance, scrapes]) =>
      seriesOf(scrapes, this.#nowSeconds, instance),
    );
  }

  async #evaluate(): Promise<Alert[]> {
    const pending = await this.#promql.pending(this.#series(), this.#groups);
    const named = pending.map(({ alert, labels }) => ({
      // The engine returns the labels in one order.
      id: JSON.stringify([alert, labels]),
      alert,
      installation: labels["installation"] ?? "",
      cluster: labels["cluster"] ?? "",
    }));
    this.#since = new Map(
      named.map(({ id }) => [id, this.#since.get(id) ?? this.#nowSeconds] as const),
    );
    const firing = named.filter(
      ({ alert, id }) =>
        this.#nowSeconds - (this.#since.get(id) ?? this.#nowSeconds) >= this.#secondsOf(alert),
    );
    return firing.map(({ alert, installation, cluster }) => ({ alert, installation, cluster }));
  }

  /** Returns the time that an alert must hold before it fires. */
  #secondsOf(alert: string): number {
    const rule = this.#groups.flatMap(({ rules }) => rules).find((one) => one.alert === alert);
    const [, count = "0", unit = "s"] = /^(\d+)([smhd])$/.exec(rule?.for ?? "0s") ?? [];
    return Number(count) * ({ s: 1, m: 60, h: 3_600, d: 86_400 }[unit] ?? 1);
  }
}

/** Returns the series of the last scrape with their earlier values, oldest first. */
function seriesOf(scrapes: readonly TimedScrape[], nowSeconds: number, instance: string): Series[] {
  const last = scrapes.at(-1)?.scrape ?? new Map<string, number>();
  return [...last.keys()].map((series) => {
    const points = scrapes.flatMap(({ atSeconds, scrape }) => {
      const value = scrape.get(series);
      return value === undefined ? [] : [[nowSeconds - atSeconds, value] as const];
    });
    return { labels: { instance, ...labelsOf(series) }, points };
  });
}
