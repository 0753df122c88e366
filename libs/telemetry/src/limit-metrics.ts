import { Counter, Gauge, type Registry } from "prom-client";

/** One process's use of a named limit. Counts since the start of the process. */
interface LimitMetrics {
  readonly name: string;
  readonly held: number;
  readonly granted: number;
  readonly waited: number;
  readonly lost: number;
}

/** Reads the limits at each scrape, until the returned function is called. */
export type ObserveLimits = (read: () => readonly LimitMetrics[]) => () => void;

/** The metrics of the named limits of one process. */
export function createLimitMetrics(registry: Registry): (cluster: string) => ObserveLimits {
  const registers = [registry];
  const readers = new Map<() => readonly LimitMetrics[], string>();
  const readLimits = () =>
    [...readers].flatMap(([read, cluster]) => read().map((limit) => ({ cluster, limit })));
  const held: Gauge<"cluster" | "limit"> = new Gauge({
    name: "konverge_limit_held_slots",
    help: "Number of slots of the limit that this process holds.",
    labelNames: ["cluster", "limit"],
    registers,
    collect() {
      held.reset();
      for (const { cluster, limit } of readLimits()) {
        held.inc({ cluster, limit: limit.name }, limit.held);
      }
    },
  });
  const counter = (name: string, help: string, value: (limit: LimitMetrics) => number) =>
    new Counter({
      name: `konverge_limit_${name}_total`,
      help,
      labelNames: ["cluster", "limit"],
      registers,
      collect() {
        this.reset();
        for (const { cluster, limit } of readLimits()) {
          this.inc({ cluster, limit: limit.name }, value(limit));
        }
      },
    });
  counter("permits", "Total number of permits of the limit.", ({ granted }) => granted);
  counter(
    "deferrals",
    "Total number of steps and attempts that were deferred because of the limit.",
    ({ waited }) => waited,
  );
  counter(
    "lost_slots",
    "Total number of slots that this process did not renew in time.",
    ({ lost }) => lost,
  );
  return (cluster) => (read) => {
    readers.set(read, cluster);
    return () => readers.delete(read);
  };
}
