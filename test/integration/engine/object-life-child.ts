/** A worker of the controllers of object-life-controllers.ts, to be killed. */
import { createLocalGate } from "@konverge/core";
import { startEngine } from "@konverge/engine";
import { createKubeClient, loadKubeCredentials, type KubeconfigOptions } from "@konverge/kube";
import { createObjectLanes } from "@konverge/lanes";
import { createWorkQueue } from "@konverge/queue";
import { createLogger, createMetrics } from "@konverge/telemetry";
import { lifeControllers } from "./object-life-controllers.ts";

export interface LifeChildConfig {
  readonly url: string;
  readonly prefix: string;
  readonly kubeconfig: KubeconfigOptions;
  readonly namespace: string;
  readonly leaseMs: number;
}
const { url, prefix, kubeconfig, namespace, leaseMs } = JSON.parse(
  process.argv[2] ?? "{}",
) as LifeChildConfig;
const workerId = `life-${process.pid}`;
const place = { redis: { url }, cluster: "default", prefix };
await startEngine({
  controllers: lifeControllers(namespace),
  client: createKubeClient({
    credentials: loadKubeCredentials(kubeconfig),
    gate: createLocalGate({ ratePerSecond: 2_000, burst: 2_000 }),
    userAgent: "konverge-test-life/1",
  }),
  lanes: createObjectLanes({ ...place, processId: workerId, onError: () => undefined }),
  queueFor: ({ name }) => createWorkQueue({ ...place, controller: name, leaseMs }),
  workerId,
  log: createLogger({ service: "life", version: "test", level: "error" }),
  metrics: createMetrics({ version: "test" }),
  installation: prefix,
  leaseNamespace: namespace,
  election: { leaseDurationMs: 2_000, renewDeadlineMs: 1_500, retryPeriodMs: 300 },
});
process.stdout.write("started\n");
