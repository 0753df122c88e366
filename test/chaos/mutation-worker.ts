/** A worker process that applies mutations, to be killed and stopped. */
import { createLocalGate } from "@konverge/core";
import { createKubeClient, loadKubeCredentials } from "@konverge/kube";
import { ConfigMap } from "@konverge/kube/kinds";
import { createObjectLanes } from "@konverge/lanes";
import { openMutations } from "@konverge/mutations";

export interface MutationWorkerConfig {
  readonly url: string;
  readonly prefix: string;
  readonly leaseMs: number;
  readonly workerId: string;
  readonly kubeconfig: string;
}

const config = JSON.parse(process.argv[2] ?? "{}") as MutationWorkerConfig;
const { url, prefix, leaseMs, workerId, kubeconfig } = config;
// Redis and the API server become unavailable as part of the test.
const onError = () => undefined;
const place = { redis: { url }, prefix, cluster: "default" };
const client = createKubeClient({
  credentials: loadKubeCredentials({ kubeconfigText: kubeconfig }),
  gate: createLocalGate({ ratePerSecond: 2_000, burst: 2_000 }),
  userAgent: workerId,
  requestTimeoutMs: 5_000,
});
const lanes = createObjectLanes({ ...place, processId: `${workerId}-${process.pid}`, onError });
openMutations({ ...place, leaseMs, onError }).work({
  client,
  lanes,
  kinds: [ConfigMap],
  workerId,
  concurrency: 8,
  sweepEveryMs: 500,
});
process.stdout.write(`up ${process.env["FLEET_PATCH_APPLIED"] ?? ""}\n`);
