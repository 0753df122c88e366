/** Our side of the suite `controller`: a worker as `konverge worker` runs it, configured by the one argument. */
import { readSettings } from "@konverge/contracts";
import { defineConfig, defineController } from "@konverge/engine";
import { startWorker } from "@konverge/worker";
import { Gauge } from "./gauge.ts";
import { sayReadyUntilStdinEnds } from "./peer-process.ts";

export const CONTROLLER = "gauge";

export interface ControllerWorkerConfig {
  readonly redisUrl: string;
  readonly kubeconfigPath: string;
  readonly prefix: string;
  /** Default: the guard's own defaults. */
  readonly ratePerSecond?: number;
}

async function main({ redisUrl, kubeconfigPath, prefix, ratePerSecond }: ControllerWorkerConfig) {
  const gauge = defineController({
    name: CONTROLLER,
    for: Gauge,
    async reconcile({ object, kube }) {
      if (object.status?.seen === object.spec.step) return;
      await kube.mutateStatus(object, (draft) => {
        draft.status.seen = object.spec.step;
      });
    },
  });
  const cluster = {
    kubeconfig: kubeconfigPath,
    ...(ratePerSecond === undefined ? {} : { rate: ratePerSecond, burst: 2 * ratePerSecond }),
  };
  const worker = await startWorker({
    config: defineConfig({ controllers: [gauge], clusters: { default: cluster } }),
    settings: readSettings({
      // The peers log nothing per reconcile either.
      file: { redisUrl, prefix, metricsPort: 0, logLevel: "warn" },
      env: {},
    }),
    version: "bench",
  });
  await sayReadyUntilStdinEnds();
  await worker.stop();
}

if (import.meta.main) await main(JSON.parse(process.argv[2] ?? "{}") as ControllerWorkerConfig);
