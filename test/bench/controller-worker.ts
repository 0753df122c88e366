/** Konverge's side of the suite `controller`: a worker as `konverge worker` runs it. Its only argument is its configuration. */
import { readSettings } from "@konverge/contracts";
import { defineConfig, startWorkerProcess, type WorkerProcess } from "@konverge/worker";
import { defineController, type ControllerOptions } from "@konverge/engine";
import { Gauge, type GaugeObject } from "./gauge.ts";
import { GAUGE_CONTROLLER } from "./gauge-queue.ts";
import { sayReadyUntilStdinEnds } from "./peer-process.ts";

export interface ControllerWorkerConfig {
  readonly redisUrl: string;
  readonly kubeconfigPath: string;
  readonly prefix: string;
  /** Default: the guard's own defaults. */
  readonly ratePerSecond?: number;
}

export function startGaugeWorker(
  { redisUrl, kubeconfigPath, prefix, ratePerSecond }: ControllerWorkerConfig,
  options: Partial<ControllerOptions<GaugeObject>> = {},
): Promise<WorkerProcess> {
  const gauge = defineController({
    name: GAUGE_CONTROLLER,
    for: Gauge,
    async reconcile({ object, kube }) {
      if (object.status?.seen === object.spec.step) return;
      await kube.mutateStatus(object, (draft) => {
        draft.status.seen = object.spec.step;
      });
    },
    ...options,
  });
  const cluster = {
    kubeconfig: kubeconfigPath,
    ...(ratePerSecond === undefined ? {} : { rate: ratePerSecond, burst: 2 * ratePerSecond }),
  };
  return startWorkerProcess({
    config: defineConfig({ controllers: [gauge], clusters: { default: cluster } }),
    settings: readSettings({
      // The peers do not log reconciles either.
      file: { redisUrl, prefix, metricsPort: 0, logLevel: "warn" },
      env: {},
    }),
    version: "bench",
  });
}

async function main(config: ControllerWorkerConfig): Promise<void> {
  const worker = await startGaugeWorker(config);
  await sayReadyUntilStdinEnds();
  await worker.stop();
}

if (import.meta.main) await main(JSON.parse(process.argv[2] ?? "{}") as ControllerWorkerConfig);
