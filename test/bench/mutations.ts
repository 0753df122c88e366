import { execFile, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { createLocalGate } from "@konverge/core";
import { startControlPlane } from "@konverge/infra-envtest";
import { obtainRedis } from "@konverge/infra-redis";
import { createKubeClient, loadKubeCredentials, type KubeClient } from "@konverge/kube";
import { ConfigMap } from "@konverge/kube/kinds";
import { openMutations, type Mutations, type NewMutation } from "@konverge/mutations";
import { openBareClient } from "./bare-client.ts";
import { buildGoPeer } from "./build-peer.ts";
import { figureOf, rateOf, type BenchOptions, type Figure } from "./measure.ts";
import type { MutationsWorkerConfig } from "./mutations-worker.ts";

const execute = promisify(execFile);
const WORKER = fileURLToPath(new URL("mutations-worker.ts", import.meta.url));
const COUNT = 1_000;
const ROUNDS = 3;
/** Objects at the same time. */
const WIDTH = 32;
const NAMESPACE = "default";
const HOT = "hot";
/** A peer that is not done by then is stopped. Its figure is then this time, in ms. */
const PEER_LIMIT_MS = 120_000;
const PEER = `client-go RetryOnConflict, until done or ${PEER_LIMIT_MS / 1_000} s`;
const nameOf = (index: number) => `mutation-${index}`;

interface Stage {
  readonly client: KubeClient;
  readonly mutations: Mutations;
  readonly kubeconfigPath: string;
  /** Returns the calls of the worker since the last question. */
  readonly calls: () => Promise<number>;
  readonly log: BenchOptions["log"];
}

/** Measures mutations of one object next to client-go's RetryOnConflict, and of 1,000 objects next to bare PATCHes. */
export async function benchMutations({ log }: BenchOptions): Promise<Figure[]> {
  const redis = await obtainRedis({ log });
  try {
    await using plane = await startControlPlane({ log });
    const { kubeconfigPath } = plane;
    const client = createKubeClient({
      credentials: loadKubeCredentials({ kubeconfigPath }),
      gate: createLocalGate({ ratePerSecond: 1e6, burst: 1e6 }),
      userAgent: "konverge-bench",
    });
    const prefix = `bench-${crypto.randomUUID()}`;
    const config: MutationsWorkerConfig = {
      redisUrl: redis.url,
      prefix,
      kubeconfigPath,
      concurrency: WIDTH,
    };
    const child = fork(WORKER, [JSON.stringify(config)], { execArgv: process.execArgv });
    await once(child, "message");
    const mutations = openMutations({ redis: { url: redis.url }, prefix, cluster: "default" });
    const calls = async () => {
      const answer = once(child, "message");
      child.send("calls");
      const [found] = (await answer) as [{ readonly calls: number }];
      return found.calls;
    };
    const stage: Stage = { client, mutations, kubeconfigPath, calls, log };
    const figures = [...(await oneObject(stage)), ...(await manyObjects(stage, plane.kubeconfig))];
    await mutations.close();
    child.disconnect();
    await once(child, "exit");
    await client.close();
    return figures;
  } finally {
    await redis.stop();
  }
}

/** As many callers as increments, each with its own request, which wait for the results. */
async function oneObject({
  client,
  mutations,
  kubeconfigPath,
  calls,
  log,
}: Stage): Promise<Figure[]> {
  await client.create(ConfigMap, { metadata: { namespace: NAMESPACE, name: HOT }, data: {} });
  const generation = async () =>
    Number((await client.get(ConfigMap, { namespace: NAMESPACE, name: HOT })).data?.["count"] ?? 0);
  const given = () => Array.from({ length: COUNT }, () => increment(HOT));
  // Loads the code, and opens the connections.
  await runAll(mutations, given().slice(0, 50));
  const peer = await buildGoPeer("client-go", (line) => log(`mutations: ${line}`));
  const [ours, theirs, writes]: [number[], number[], number[]] = [[], [], []];
  for (let round = 0; round < ROUNDS; round += 1) {
    await calls();
    const before = await generation();
    const startedMs = performance.now();
    const ends = await runAll(mutations, given());
    ours.push(performance.now() - startedMs);
    await calls();
    if ((await generation()) - before !== COUNT)
      throw new Error("an increment was lost or repeated");
    writes.push(new Set(ends.map(({ resourceVersion }) => resourceVersion)).size);
    // One round takes minutes.
    if (peer === undefined || round > 0) continue;
    const args = ["-kubeconfig", kubeconfigPath, "-name", HOT, "-writers", String(COUNT)];
    log("mutations: client-go, until done");
    theirs.push(await timeOf(peer, [...args, "-until-done"]));
  }
  const what = { suite: "mutations", case: `${COUNT} increments of one object` };
  return [
    figureOf({ ...what, metric: "writes", unit: "writes", ours: writes, goal: 60, goalIs: "most" }),
    figureOf({
      ...what,
      metric: "time",
      unit: "ms",
      ours,
      ...(theirs.length === 0
        ? {}
        : {
            peer: { name: PEER, values: theirs },
            goal: 0.05,
            goalIs: "most" as const,
          }),
    }),
  ];
}

async function manyObjects(
  { client, mutations, calls }: Stage,
  kubeconfig: string,
): Promise<Figure[]> {
  const bare = openBareClient(kubeconfig, 64);
  await rateOf(COUNT, WIDTH, (_, index) =>
    client.create(ConfigMap, { metadata: { namespace: NAMESPACE, name: nameOf(index) }, data: {} }),
  );
  const [ours, patches, reads, perObject]: [number[], number[], number[], number[]] = [
    [],
    [],
    [],
    [],
  ];
  let count = 0;
  for (let round = 0; round <= ROUNDS; round += 1) {
    await calls();
    const given = Array.from({ length: COUNT }, (_, index) => increment(nameOf(index)));
    const startedMs = performance.now();
    await mutations.submit(given);
    const signal = AbortSignal.timeout(300_000);
    await Promise.all(given.map(({ id }) => mutations.settled(id, signal)));
    const own = (COUNT * 1_000) / (performance.now() - startedMs);
    const ownCalls = (await calls()) / COUNT;
    const path = (index: number) => `/api/v1/namespaces/${NAMESPACE}/configmaps/${nameOf(index)}`;
    const patch = async (index: number) =>
      await bare.send("PATCH", path(index), { data: { n: String((count += 1)) } });
    const patched = await rateOf(COUNT, WIDTH, (_, index) => patch(index));
    const readAndPatched = await rateOf(COUNT, WIDTH, async (_, index) => {
      await bare.send("GET", path(index));
      await patch(index);
    });
    if (round === 0) continue;
    ours.push(own);
    perObject.push(ownCalls);
    patches.push(patched);
    reads.push(readAndPatched);
  }
  await bare.close();
  const what = { suite: "mutations", case: `${COUNT} objects, ${WIDTH} at a time` };
  const rate = { ...what, metric: "rate", unit: "1/s", ours };
  return [
    figureOf({ ...rate, peer: { name: "undici, PATCH", values: patches }, goal: 0.8 }),
    figureOf({ ...rate, peer: { name: "undici, GET and PATCH", values: reads } }),
    figureOf({ ...what, metric: "calls per object", unit: "calls", ours: perObject }),
  ];
}

/** Returns the time of the peer. */
async function timeOf(peer: string, args: readonly string[]): Promise<number> {
  const ended = execute(peer, args, { timeout: PEER_LIMIT_MS });
  const output = await ended.catch((error: unknown) => {
    if ((error as { readonly killed?: boolean }).killed === true) return undefined;
    throw error;
  });
  if (output === undefined) return PEER_LIMIT_MS;
  return (JSON.parse(output.stdout) as { readonly ms: number }).ms;
}

function increment(name: string): NewMutation {
  return {
    id: crypto.randomUUID(),
    object: {
      group: "",
      version: "v1",
      kind: "ConfigMap",
      resource: "configmaps",
      namespace: NAMESPACE,
      name,
    },
    changes: [{ kind: "increment", path: "/data/count", by: 1 }],
  };
}

async function runAll(mutations: Mutations, given: readonly NewMutation[]) {
  const signal = AbortSignal.timeout(300_000);
  return await Promise.all(
    given.map(async (one) => {
      await mutations.submit([one]);
      return await mutations.settled(one.id, signal);
    }),
  );
}
