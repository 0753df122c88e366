import { readSettings } from "@konverge/contracts";
import type { Controller } from "@konverge/engine";
import { defineConfig, startWorkerProcess, type WorkerProcess } from "@konverge/worker";

/** Where a worker under measurement finds Redis and the API server. */
export interface BenchWorkerPlace {
  readonly redisUrl: string;
  readonly kubeconfigPath: string;
  readonly prefix: string;
}

/** Starts a worker of one cluster, without log lines per reconcile: the peers have none either. */
export function startBenchWorker(
  { redisUrl, kubeconfigPath, prefix }: BenchWorkerPlace,
  controllers: readonly Controller[],
  limits: { readonly rate?: number; readonly burst?: number } = {},
): Promise<WorkerProcess> {
  return startWorkerProcess({
    config: defineConfig({
      controllers,
      clusters: { default: { kubeconfig: kubeconfigPath, ...limits } },
    }),
    settings: readSettings({
      file: { redisUrl, prefix, metricsPort: 0, logLevel: "warn" },
      env: {},
    }),
    version: "bench",
  });
}
