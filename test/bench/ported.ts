import { createLocalGate } from "@konverge/core";
import { startControlPlane } from "@konverge/infra-envtest";
import { obtainRedis } from "@konverge/infra-redis";
import { createKubeClient, loadKubeCredentials } from "@konverge/kube";
import { buildAsShipped } from "./as-shipped.ts";
import { openBareClient } from "./bare-client.ts";
import { describe, runArm, type Result } from "./controller.ts";
import { FREE_RATE, konvergeArm } from "./controller-arms.ts";
import { createGauges } from "./gauge.ts";
import { startGaugeLoad } from "./gauge-load.ts";
import { figureOf, type BenchOptions, type Figure } from "./measure.ts";

const ROUNDS = 3;
const GOAL = 4;

/**
 * Measures a controller whose handlers read and replace with client-node's `CustomObjectsApi` through `kube.api`, and the same
 * controller with client-node's own client, in turn.
 */
export async function benchPorted({ log, objects }: BenchOptions): Promise<Figure[]> {
  await using cleanup = new AsyncDisposableStack();
  const redis = await obtainRedis({ log });
  cleanup.defer(() => redis.stop());
  const plane = cleanup.use(await startControlPlane({ log }));
  const { kubeconfigPath } = plane;
  const client = createKubeClient({
    credentials: loadKubeCredentials({ kubeconfigPath }),
    gate: createLocalGate({ ratePerSecond: 1e6, burst: 1e6 }),
    userAgent: "konverge-bench",
  });
  cleanup.defer(() => client.close());
  const bare = openBareClient(plane.kubeconfig, 16);
  cleanup.defer(() => bare.close());
  log(`ported: creating ${objects} objects`);
  await createGauges(client, objects);
  const load = await startGaugeLoad(client, bare);
  cleanup.defer(() => load.stop());
  const { "controller-worker.ts": worker } = await buildAsShipped(["controller-worker.ts"]);
  const sides = (["kube.api", "own client"] as const).map((ported) => ({
    arm: konvergeArm(
      `CustomObjectsApi, ${ported}`,
      { redisUrl: redis.url, kubeconfigPath, log },
      { worker, workers: 1, ratePerSecond: FREE_RATE, ported },
    ),
    results: new Array<Result>(),
  }));
  for (let round = 1; round <= ROUNDS; round++) {
    for (const { arm, results } of sides) {
      const result = await runArm(arm, { client, load, objects });
      results.push(result);
      log(`ported: round ${round}, ${arm.name}: ${describe(result)}`);
    }
  }
  const [ours = [], theirs = []] = sides.map(({ results }) => results);
  const beside = (metric: string, unit: string, read: (result: Result) => number) => ({
    suite: "ported",
    case: "a controller with CustomObjectsApi, 16 at a time",
    metric,
    unit,
    ours: ours.map(read),
    peer: { name: "client-node's own client", values: theirs.map(read) },
  });
  return [
    figureOf({ ...beside("changed to written", "1/s", ({ rate }) => rate), goal: GOAL }),
    figureOf(beside("CPU of the worker per reconcile", "ms", (one) => one.cpuMsPerReconcile)),
    figureOf(beside("at 100 changes/s, p50", "ms", ({ pacedP50Ms }) => pacedP50Ms)),
    figureOf(beside("peak memory", "MiB", ({ peakMiB }) => peakMiB)),
  ];
}
