import { readFileSync } from "node:fs";
import { createLocalGate } from "@konverge/core";
import { obtainRedis } from "@konverge/infra-redis";
import { createKubeClient, loadKubeCredentials } from "@konverge/kube";
import { buildAsShipped } from "./as-shipped.ts";
import { openBareClient } from "./bare-client.ts";
import { controllerRuntimeArm, konvergeArm, type Arm, type ArmOptions } from "./controller-arms.ts";
import { startEmbeddedServer } from "./embedded-server.ts";
import { createGauges } from "./gauge.ts";
import { startGaugeLoad, type GaugeLoad } from "./gauge-load.ts";
import { buildGoPeer } from "./build-peer.ts";
import { figureOf, round2, type BenchOptions, type Figure } from "./measure.ts";
import { peakMemoryMiB, residentMemoryMiB } from "./peer-process.ts";

const ROUNDS = 3;
const SIZES = [
  { objects: 1_000, goalMiB: 115 },
  { objects: 10_000, goalMiB: 180 },
];
const CHANGES = 1_000;
const MAX_RATIO = 2;

interface Memory {
  readonly peakMiB: number;
  readonly residentMiB: number;
}

/**
 * Measures the memory of one worker with a cache of objects of 2 kB, and of a controller of controller-runtime in turn: while it
 * starts, reconciles all objects, and writes a status after a change of 1,000 of them. The server is the embedded one, because a
 * real one on the same cores takes most of the time.
 */
export async function benchMemory({ log, arms }: BenchOptions): Promise<Figure[]> {
  const figures: Figure[] = [];
  for (const size of SIZES) {
    if (arms.length > 0 && !arms.includes(String(size.objects))) continue;
    figures.push(...(await measureSize(size, log)));
  }
  return figures;
}

async function measureSize(
  { objects, goalMiB }: (typeof SIZES)[number],
  log: BenchOptions["log"],
): Promise<Figure[]> {
  await using cleanup = new AsyncDisposableStack();
  const redis = await obtainRedis({ log });
  cleanup.defer(() => redis.stop());
  const server = cleanup.use(await startEmbeddedServer());
  const { kubeconfigPath } = server;
  const client = createKubeClient({
    credentials: loadKubeCredentials({ kubeconfigPath }),
    gate: createLocalGate({ ratePerSecond: 1e6, burst: 1e6 }),
    userAgent: "konverge-bench",
  });
  cleanup.defer(() => client.close());
  const bare = openBareClient(readFileSync(kubeconfigPath, "utf8"), 16);
  cleanup.defer(() => bare.close());
  log(`memory: creating ${objects} objects`);
  await createGauges(client, objects, { large: true });
  const load = await startGaugeLoad(client, bare);
  cleanup.defer(() => load.stop());
  const { ours, peer } = await makeSides({ redisUrl: redis.url, kubeconfigPath, log });
  const mine: Memory[] = [];
  const theirs: Memory[] = [];
  for (let round = 1; round <= ROUNDS; round++) {
    for (const [arm, results] of [[ours, mine] as const, [peer, theirs] as const]) {
      if (arm === undefined) continue;
      const memory = await runArm(arm, load);
      results.push(memory);
      log(
        `memory: ${objects} objects, ${arm.name}: peak ${round2(memory.peakMiB)} MiB, then ${round2(memory.residentMiB)} MiB`,
      );
    }
  }
  return figuresOf(`${objects} objects of 2 kB`, goalMiB, { mine, theirs, peer });
}

interface Measured {
  readonly mine: readonly Memory[];
  readonly theirs: readonly Memory[];
  readonly peer: Arm | undefined;
}

function figuresOf(name: string, goalMiB: number, { mine, theirs, peer }: Measured): Figure[] {
  const what = { suite: "memory", case: name, unit: "MiB", goalIs: "most" } as const;
  const peaks = mine.map(({ peakMiB }) => peakMiB);
  const figures = [figureOf({ ...what, metric: "peak", ours: peaks, goal: goalMiB })];
  if (peer === undefined) return figures;
  const beside = (metric: string, of: (memory: Memory) => number): Figure =>
    figureOf({
      ...what,
      metric,
      ours: mine.map(of),
      peer: { name: peer.name, values: theirs.map(of) },
      goal: MAX_RATIO,
    });
  figures.push(
    beside("peak", ({ peakMiB }) => peakMiB),
    beside("after the changes", ({ residentMiB }) => residentMiB),
  );
  return figures;
}

async function makeSides(options: ArmOptions): Promise<{ ours: Arm; peer: Arm | undefined }> {
  const programs = await buildAsShipped(["controller-worker.ts"]);
  const program = await buildGoPeer("controller-runtime", options.log);
  return {
    ours: konvergeArm("Konverge, 1 worker", options, {
      worker: programs["controller-worker.ts"],
      workers: 1,
    }),
    peer:
      program === undefined
        ? undefined
        : controllerRuntimeArm("16 at a time", options, { program, args: ["-concurrency", "16"] }),
  };
}

/** The memory of the process while it starts and writes a status after a change of some objects. */
async function runArm(arm: Arm, load: GaugeLoad): Promise<Memory> {
  const processes = await arm.start();
  try {
    await load.change({ by: arm.name, count: CHANGES });
    const [pid = 0] = processes.map((each) => each.pid);
    return {
      peakMiB: peakMemoryMiB(pid) ?? Number.NaN,
      residentMiB: residentMemoryMiB(pid) ?? Number.NaN,
    };
  } finally {
    await Promise.all(processes.map((each) => each.stop()));
  }
}
