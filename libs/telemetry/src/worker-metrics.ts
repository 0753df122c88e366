import { Gauge, type Registry } from "prom-client";

/** The metrics of the workers themselves. */
export interface WorkerMetrics {
  /** Reports a worker of this process, from its start until the returned function is called. */
  observeWorker(worker: { readonly role: string; readonly isReady: () => boolean }): () => void;
  /** Reports the kinds of a restored Redis that wait for an operator, until the returned function is called. */
  observeRestore(held: () => readonly string[]): () => void;
}

type ObservedWorker = Parameters<WorkerMetrics["observeWorker"]>[0];

/** The metrics of the workers of one process, one per cluster. */
export function createWorkerMetrics(
  registry: Registry,
  version: string,
): (cluster: string) => WorkerMetrics {
  const registers = [registry];
  const workers = new Map<ObservedWorker, string>();
  const infos: Gauge<"cluster" | "role" | "version"> = new Gauge({
    name: "konverge_worker_info",
    help: "1 for each cluster that this worker serves or tries to serve.",
    labelNames: ["cluster", "role", "version"],
    registers,
    collect() {
      infos.reset();
      for (const [{ role }, cluster] of workers) infos.set({ cluster, role, version }, 1);
    },
  });
  const ready: Gauge<"cluster" | "role"> = new Gauge({
    name: "konverge_worker_ready",
    help: "1 if this worker has started on the cluster and can reach its API server, else 0.",
    labelNames: ["cluster", "role"],
    registers,
    collect() {
      ready.reset();
      for (const [{ role, isReady }, cluster] of workers) {
        ready.set({ cluster, role }, isReady() ? 1 : 0);
      }
    },
  });
  const restores = new Map<() => readonly string[], string>();
  const held: Gauge<"cluster" | "kind"> = new Gauge({
    name: "konverge_restore_held",
    help: "1 for each kind of state of a restored Redis that is held; kind none if nothing is held.",
    labelNames: ["cluster", "kind"],
    registers,
    collect() {
      held.reset();
      for (const [read, cluster] of restores) {
        const kinds = read();
        held.set({ cluster, kind: "none" }, kinds.length === 0 ? 1 : 0);
        for (const kind of kinds) held.set({ cluster, kind }, 1);
      }
    },
  });
  return (cluster) => ({
    observeRestore(read) {
      restores.set(read, cluster);
      return () => restores.delete(read);
    },
    observeWorker(worker) {
      workers.set(worker, cluster);
      return () => workers.delete(worker);
    },
  });
}
