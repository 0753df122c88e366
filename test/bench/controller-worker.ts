/** Konverge's side of the suite `controller`: a worker as `konverge worker` runs it. Its only argument is its configuration. */
import type { CustomObjectsApi } from "@kubernetes/client-node";
import type { WorkerProcess } from "@konverge/worker";
import { defineController, type AttemptKube, type ControllerOptions } from "@konverge/engine";
import { Gauge, GAUGES_IN, type GaugeObject } from "./gauge.ts";
import { GAUGE_CONTROLLER } from "./gauge-queue.ts";
import { sayReadyUntilStdinEnds } from "./peer-process.ts";
import { startBenchWorker, type BenchWorkerPlace } from "./start-bench-worker.ts";

export interface ControllerWorkerConfig extends BenchWorkerPlace {
  /** Default: the guard's own defaults. */
  readonly ratePerSecond?: number;
  /** Handlers read and replace with an API of client-node, through `kube.api` or its own client. Default: `mutateStatus`. */
  readonly ported?: "kube.api" | "own client";
}

export async function startGaugeWorker(
  { ratePerSecond, ported, ...place }: ControllerWorkerConfig,
  options: Partial<ControllerOptions<GaugeObject>> = {},
): Promise<WorkerProcess> {
  const portedApi =
    ported === undefined ? undefined : await openPortedApi(ported, place.kubeconfigPath);
  const gauge = defineController({
    name: GAUGE_CONTROLLER,
    for: Gauge,
    async reconcile({ object, kube }) {
      if (object.status?.seen === object.spec.step) return;
      if (portedApi !== undefined) return await readAndReplaceStatus(portedApi(kube), object);
      await kube.mutateStatus(object, (draft) => {
        draft.status.seen = object.spec.step;
      });
    },
    ...options,
  });
  const limits =
    ratePerSecond === undefined ? {} : { rate: ratePerSecond, burst: 2 * ratePerSecond };
  return startBenchWorker(place, [gauge], limits);
}

/** Imports client-node only here: other workers do not load it. */
async function openPortedApi(
  ported: "kube.api" | "own client",
  kubeconfigPath: string,
): Promise<(kube: Pick<AttemptKube, "api">) => CustomObjectsApi> {
  const clientNode = await import("@kubernetes/client-node");
  if (ported === "kube.api") return (kube) => kube.api(clientNode.CustomObjectsApi);
  const config = new clientNode.KubeConfig();
  config.loadFromFile(kubeconfigPath);
  const api = config.makeApiClient(clientNode.CustomObjectsApi);
  return () => api;
}

/** What users of client-node write. */
async function readAndReplaceStatus(
  api: CustomObjectsApi,
  { metadata: { name } }: GaugeObject,
): Promise<void> {
  const target = {
    group: Gauge.group,
    version: Gauge.version,
    namespace: GAUGES_IN,
    plural: Gauge.resource,
    name,
  };
  const body = (await api.getNamespacedCustomObject(target)) as GaugeObject;
  body.status = { seen: body.spec.step };
  await api.replaceNamespacedCustomObjectStatus({ ...target, body });
}

async function main(config: ControllerWorkerConfig): Promise<void> {
  const worker = await startGaugeWorker(config);
  await sayReadyUntilStdinEnds();
  await worker.stop();
}

if (import.meta.main) await main(JSON.parse(process.argv[2] ?? "{}") as ControllerWorkerConfig);
