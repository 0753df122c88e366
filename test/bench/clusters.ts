import { defineController } from "@konverge/engine";
import { ConfigMap } from "@konverge/kube/kinds";
import { createWorkQueue } from "@konverge/queue";
import { defineConfig, kubeconfigDirectory, startWorker } from "@konverge/worker";
import { startTcpProxy } from "../chaos/tcp-proxy.ts";
import {
  KubeconfigFolder,
  startFleetCluster,
  type FleetCluster,
} from "../integration/worker/fleet-harness.ts";
import { figureOf, type BenchOptions, type Figure } from "./measure.ts";
import { startOwnRedis } from "./own-redis.ts";

const CLUSTERS = 20;
const SLOTS = 16;
/** Changes of one side in a round. */
const CHANGES = 250;
/** Concurrent changes, each of another object. */
const WIDTH = 8;
/** Many short ones, because the machine gets slower and faster. The p99 is that of all rounds. */
const ROUNDS = 40;
const namespace = "default";
const silent = () => undefined;
const log = { debug: silent, info: silent, warn: silent, error: silent, child: () => log };

/** The times of changes in ms, and the CPU time of each on average. */
interface Block {
  readonly times: readonly number[];
  readonly cpuUs: number;
}

/**
 * Measures one worker on 20 clusters: the time from a change to the end of its reconcile in 19 of them, while the last one hangs
 * with full slots, against the time while it responds. Then the time until an object of a new cluster is reconciled.
 */
export async function benchClusters({ log: print }: BenchOptions): Promise<Figure[]> {
  await using cleanup = new AsyncDisposableStack();
  const redis = cleanup.use(await startOwnRedis(print));
  const clusters: FleetCluster[] = [];
  for (let n = 0; n <= CLUSTERS; n += 1) clusters.push(cleanup.use(await startFleetCluster()));
  const [hanging, added, ...others] = clusters;
  if (hanging === undefined || added === undefined) throw new Error("no clusters");
  const { url, kubeconfig } = hanging.server;
  const proxy = cleanup.use(await startTcpProxy(Number(new URL(url).port)));
  const folder = cleanup.use(new KubeconfigFolder());
  folder.put("hanging", kubeconfig.replace(url, `http://127.0.0.1:${proxy.port}`));
  others.forEach(({ server }, n) => folder.put(`c${n}`, server.kubeconfig));

  const waiting = new Map<string, () => void>();
  const reconcile = defineController({
    name: "bench",
    for: ConfigMap,
    concurrency: SLOTS,
    async reconcile({ object, key, kube }) {
      if (key.cluster === "hanging") await kube.get(ConfigMap, key.name);
      waiting.get(`${key.cluster} ${key.name} ${object.data?.["n"] ?? ""}`)?.();
    },
  });
  const worker = await startWorker({
    config: defineConfig({
      controllers: [reconcile],
      clusters: kubeconfigDirectory({ path: folder.path }),
      settings: { requestTimeout: "10m", shutdownGrace: "1s" },
    }),
    redis: redis.url,
    log,
  });
  cleanup.defer(() => worker.kill());
  const changeAndWait = async (cluster: string, { client }: FleetCluster, n: number) => {
    const name = `o${n % WIDTH}`;
    const done = new Promise<void>((resolve) => waiting.set(`${cluster} ${name} ${n}`, resolve));
    const startedMs = performance.now();
    await client.apply(ConfigMap, { metadata: { namespace, name }, data: { n: String(n) } });
    await done;
    waiting.delete(`${cluster} ${name} ${n}`);
    return performance.now() - startedMs;
  };
  let serial = 0;
  const timesOfChanges = async (): Promise<Block> => {
    const times: number[] = [];
    const before = process.cpuUsage();
    const first = serial;
    serial += CHANGES;
    await Promise.all(
      Array.from({ length: WIDTH }, async (_, lane) => {
        for (let n = first + lane; n < first + CHANGES; n += WIDTH) {
          const index = n % others.length;
          const cluster = others[index];
          if (cluster !== undefined) times.push(await changeAndWait(`c${index}`, cluster, n));
        }
      }),
    );
    const { user, system } = process.cpuUsage(before);
    return { times, cpuUs: (user + system) / CHANGES };
  };
  const queue = createWorkQueue({
    redis: { url: redis.url },
    controller: "bench",
    cluster: "hanging",
  });
  cleanup.defer(() => queue.close());
  for (let n = 0; n < SLOTS; n += 1) {
    await hanging.client.apply(ConfigMap, { metadata: { namespace, name: `o${n}` }, data: {} });
  }
  const whileHanging = async () => {
    proxy.hold();
    for (let n = 0; n < 3 * SLOTS; n += 1) {
      const at = { controller: "bench", cluster: "hanging", group: "", resource: "configmaps" };
      await queue.request({ ...at, namespace, name: `o${n}` }, { kind: "cli", reason: "bench" });
    }
    while ((await queue.counts()).active < SLOTS) await new Promise((next) => setTimeout(next, 20));
    const block = await timesOfChanges();
    proxy.heal();
    while ((await queue.counts()).active > 0) await new Promise((next) => setTimeout(next, 20));
    return block;
  };
  const [hung, alive]: [Block[], Block[]] = [[], []];
  for (let round = 0; round <= ROUNDS; round += 1) {
    const isFirst = round % 2 === 0;
    const before = isFirst ? await timesOfChanges() : undefined;
    const one = await whileHanging();
    const other = before ?? (await timesOfChanges());
    // The first round is a warm-up.
    if (round === 0) continue;
    hung.push(one);
    alive.push(other);
    if (round % 10 !== 0) continue;
    print(`clusters: p99 ${p99(hung).toFixed(1)} ms, all alive ${p99(alive).toFixed(1)} ms`);
  }
  const name = "new";
  await added.client.apply(ConfigMap, { metadata: { namespace, name }, data: { n: "1" } });
  const engaged = new Promise<void>((resolve) => waiting.set(`added ${name} 1`, resolve));
  const startedMs = performance.now();
  folder.put("added", added.server.kubeconfig);
  await engaged;
  const seconds = (performance.now() - startedMs) / 1_000;
  return figuresOf(hung, alive, seconds);
}

function figuresOf(hung: readonly Block[], alive: readonly Block[], seconds: number): Figure[] {
  const what = { suite: "clusters", case: `${CLUSTERS} clusters in one worker` };
  return [
    figureOf({
      ...what,
      metric: "p99 of 19 clusters while one hangs",
      unit: "ms",
      ours: [p99(hung)],
      peer: { name: "all alive", values: [p99(alive)] },
      goal: 1.05,
      goalIs: "most",
    }),
    figureOf({
      ...what,
      metric: "CPU of the process per change while one hangs",
      unit: "us",
      ours: hung.map(({ cpuUs }) => cpuUs),
      peer: { name: "all alive", values: alive.map(({ cpuUs }) => cpuUs) },
      goal: 1.05,
      goalIs: "most",
    }),
    figureOf({
      ...what,
      metric: "first reconcile in an added cluster",
      unit: "s",
      ours: [seconds],
      goal: 5,
      goalIs: "most",
    }),
  ];
}

function p99(blocks: readonly Block[]): number {
  const times = blocks.flatMap((block) => block.times).toSorted((a, b) => a - b);
  return times[Math.floor(times.length * 0.99)] ?? 0;
}
