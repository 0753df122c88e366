/** A worker process for random programs of verbs, to be killed and stopped. */
import { Redis } from "ioredis";
import { createLocalGate } from "@konverge/core";
import { createKubeClient, loadKubeCredentials } from "@konverge/kube";
import { openWorkflows } from "@konverge/workflow";
import { makeVerbInterpreter } from "./verb-interpreter.ts";
import { bodiesOf, healedOf, NAMESPACE } from "./verb-programs.ts";

export interface VerbWorkerConfig {
  readonly url: string;
  readonly prefix: string;
  readonly test: string;
  readonly leaseMs: number;
  readonly workerId: string;
  readonly concurrency: number;
  readonly kubeconfig: string;
  readonly version: number;
}

const config = JSON.parse(process.argv[2] ?? "{}") as VerbWorkerConfig;
const { url, prefix, test, leaseMs, workerId, concurrency, kubeconfig, version } = config;
const workflows = openWorkflows({
  redis: { url },
  prefix,
  leaseMs,
  // Redis and the API server become unavailable as part of the test.
  onError: () => undefined,
});
const client = createKubeClient({
  credentials: loadKubeCredentials({ kubeconfigText: kubeconfig }),
  gate: createLocalGate({ ratePerSecond: 2_000, burst: 2_000 }),
  userAgent: workerId,
  requestTimeoutMs: 5_000,
});
const redis = new Redis(url);
redis.on("error", () => undefined);
const clusters = { home: "default", client: async () => client };
// Any of them can be the watcher.
workflows.watch({
  clusters,
  namespace: NAMESPACE,
  name: `${test}-waits`,
  identity: workerId,
  leaseDurationMs: 3_000,
  renewDeadlineMs: 2_000,
  retryPeriodMs: 500,
});
const worker = workflows.work({
  workflows: [
    makeVerbInterpreter(test, {
      version,
      onBody: () => redis.incr(bodiesOf(prefix)),
      isHealed: async () => (await redis.exists(healedOf(prefix))) === 1,
    }),
  ],
  workerId,
  concurrency,
  clusters,
});
process.once("SIGTERM", () => {
  void worker.stop().then(async () => {
    await workflows.close();
    await client.close();
    process.exit(0);
  });
});
process.stdout.write("up\n");
