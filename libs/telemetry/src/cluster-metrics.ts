import { Gauge, type Registry } from "prom-client";

/** Reads the states of the served clusters at each scrape, until the returned function is called. */
export type ObserveClusters = (
  read: () => readonly { readonly name: string; readonly state: string }[],
) => () => void;

/** The metrics of the clusters that a worker serves. */
export function createClusterMetrics(registry: Registry): ObserveClusters {
  const readers = new Set<Parameters<ObserveClusters>[0]>();
  const states: Gauge<"cluster" | "state"> = new Gauge({
    name: "konverge_cluster_state",
    help: "1 for the current state of a cluster, as this process sees it.",
    labelNames: ["cluster", "state"],
    registers: [registry],
    collect() {
      states.reset();
      for (const { name, state } of [...readers].flatMap((read) => read())) {
        states.set({ cluster: name, state }, 1);
      }
    },
  });
  return (read) => {
    readers.add(read);
    return () => readers.delete(read);
  };
}
