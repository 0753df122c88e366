/** A worker of mutations in its own process. */
import { createLocalGate } from "@konverge/core";
import { createKubeClient, loadKubeCredentials } from "@konverge/kube";
import { ConfigMap } from "@konverge/kube/kinds";
import { createObjectLanes } from "@konverge/lanes";
import { openMutations } from "@konverge/mutations";

export interface MutationsWorkerConfig {
  readonly redisUrl: string;
  readonly prefix: string;
  readonly kubeconfigPath: string;
  readonly concurrency: number;
}

const config = JSON.parse(process.argv[2] ?? "{}") as MutationsWorkerConfig;
const { redisUrl, prefix, kubeconfigPath, concurrency } = config;
let calls = 0;
const client = createKubeClient({
  credentials: loadKubeCredentials({ kubeconfigPath }),
  gate: createLocalGate({ ratePerSecond: 1e6, burst: 1e6 }),
  userAgent: "konverge-bench",
  maxConnections: 64,
}).scoped({
  onSend() {
    calls += 1;
    return { headers: {}, ended: () => undefined };
  },
});
const onError = (error: Error) => console.error(error.message);
const place = { redis: { url: redisUrl }, prefix, cluster: "default" };
const lanes = createObjectLanes({ ...place, processId: `bench-${process.pid}`, onError });
const mutations = openMutations({ ...place, onError });
const worker = mutations.work({
  client,
  lanes,
  kinds: [ConfigMap],
  workerId: "bench",
  concurrency,
});
process.on("message", () => {
  process.send?.({ calls });
  calls = 0;
});
async function stop(): Promise<void> {
  await worker.stop();
  await mutations.close();
  lanes.close();
  await client.close();
}
process.on("disconnect", () => void stop());
process.send?.({ calls });
