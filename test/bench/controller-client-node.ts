/** A hand-written controller with @kubernetes/client-node, the usual way in TypeScript: informer, queue, 16 in flight. */
import { ApiException, CustomObjectsApi, KubeConfig, makeInformer } from "@kubernetes/client-node";
import { Gauge, GAUGES_IN } from "./gauge.ts";
import { sayReadyUntilStdinEnds } from "./peer-process.ts";

interface GaugeObject {
  metadata: { name: string; resourceVersion: string };
  spec: { step: number };
  status?: { seen?: number };
}

const IN_FLIGHT = 16;
const RESTART_MS = 200;

async function main(kubeconfigPath: string): Promise<void> {
  const config = new KubeConfig();
  config.loadFromFile(kubeconfigPath);
  const api = config.makeApiClient(CustomObjectsApi);
  const kind = {
    group: Gauge.group,
    version: Gauge.version,
    plural: Gauge.resource,
    namespace: GAUGES_IN,
  };
  const path = `/apis/${kind.group}/${kind.version}/namespaces/${GAUGES_IN}/${kind.plural}`;
  const informer = makeInformer<GaugeObject>(config, path, () =>
    api.listNamespacedCustomObject(kind),
  );
  const waiting = new Set<string>();
  const running = new Set<string>();

  const reconcile = async (name: string): Promise<void> => {
    let gauge = informer.get(name, GAUGES_IN);
    while (gauge !== undefined && gauge.status?.seen !== gauge.spec.step) {
      const body = { ...gauge, status: { seen: gauge.spec.step } };
      try {
        await api.replaceNamespacedCustomObjectStatus({ ...kind, name, body });
        return;
      } catch (error) {
        if (!(error instanceof ApiException) || error.code !== 409) throw error;
        gauge = (await api.getNamespacedCustomObject({ ...kind, name })) as GaugeObject;
      }
    }
  };
  const work = async (name: string): Promise<void> => {
    running.add(name);
    try {
      await reconcile(name);
    } catch (error) {
      console.error(error);
      waiting.add(name);
    }
    running.delete(name);
    pump();
  };
  const pump = (): void => {
    for (const name of waiting) {
      if (running.size >= IN_FLIGHT) return;
      // A key that is being reconciled stays in the queue.
      if (running.has(name)) continue;
      waiting.delete(name);
      void work(name);
    }
  };
  const seen = ({ metadata: { name } }: GaugeObject): void => {
    waiting.add(name);
    pump();
  };
  informer.on("add", seen);
  informer.on("update", seen);
  informer.on("error", () => {
    setTimeout(() => void informer.start(), RESTART_MS);
  });
  await informer.start();
  await sayReadyUntilStdinEnds();
  process.exit(0);
}

await main(process.argv[2] ?? "");
