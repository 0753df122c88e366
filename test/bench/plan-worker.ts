/**
 * A worker whose objects are planned while another controller reconciles changes. Prints `ready` when all objects are
 * reconciled, and adds the time of each change in ms to a list in Redis.
 */
import { createLocalGate } from "@konverge/core";
import { child, defineController } from "@konverge/engine";
import { createKubeClient, loadKubeCredentials } from "@konverge/kube";
import { ConfigMap } from "@konverge/kube/kinds";
import { Redis } from "ioredis";
import { sayReadyUntilStdinEnds } from "./peer-process.ts";
import { startBenchWorker, type BenchWorkerPlace } from "./start-bench-worker.ts";

export interface PlanWorkerConfig extends BenchWorkerPlace {
  readonly objects: number;
  /** The list of the times of live changes. */
  readonly times: string;
}

const namespace = "default";
/** Time between two live changes, in ms. */
const LIVE_EVERY_MS = 25;
const LIVE_OBJECTS = 20;

async function main({ objects, times, ...place }: PlanWorkerConfig): Promise<void> {
  const found = new Set<string>();
  const all = Promise.withResolvers<void>();
  const waiting = new Map<string, () => void>();
  const planned = defineController({
    name: "planned",
    for: { type: ConfigMap, labels: "bench=planned" },
    async reconcile({ object, kube, plan }) {
      const { name } = object.metadata;
      // Live attempts make nothing, so that each plan has a change.
      if (plan) await kube.reconcileChildren(object, [child(ConfigMap, { name: `${name}-child` })]);
      else found.add(name);
      if (found.size === objects) all.resolve();
    },
  });
  const live = defineController({
    name: "live",
    for: { type: ConfigMap, labels: "bench=live" },
    async reconcile({ object }) {
      waiting.get(`${object.metadata.name} ${object.data?.["n"] ?? ""}`)?.();
    },
  });
  const worker = await startBenchWorker(place, [planned, live]);
  await all.promise;
  const client = createKubeClient({
    credentials: loadKubeCredentials({ kubeconfigPath: place.kubeconfigPath }),
    gate: createLocalGate({ ratePerSecond: 1e6, burst: 1e6 }),
    userAgent: "konverge-bench",
  });
  const redis = new Redis(place.redisUrl);
  let serial = 0;
  const change = async () => {
    const n = serial++;
    const name = `live-${n % LIVE_OBJECTS}`;
    const done = Promise.withResolvers<void>();
    waiting.set(`${name} ${n}`, done.resolve);
    const startMs = performance.now();
    const metadata = { namespace, name, labels: { bench: "live" } };
    await client.apply(ConfigMap, { metadata, data: { n: String(n) } });
    await done.promise;
    waiting.delete(`${name} ${n}`);
    await redis.rpush(times, String(performance.now() - startMs));
  };
  const failed = Promise.withResolvers<never>();
  const timer = setInterval(() => void change().catch(failed.reject), LIVE_EVERY_MS);
  await Promise.race([sayReadyUntilStdinEnds(), failed.promise]);
  clearInterval(timer);
  await worker.stop();
  redis.disconnect();
  await client.close();
}

if (import.meta.main) await main(JSON.parse(process.argv[2] ?? "{}") as PlanWorkerConfig);
