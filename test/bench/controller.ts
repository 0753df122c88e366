import { createLocalGate } from "@konverge/core";
import { startControlPlane } from "@konverge/infra-envtest";
import { obtainRedis } from "@konverge/infra-redis";
import { createKubeClient, loadKubeCredentials, type KubeClient } from "@konverge/kube";
import { countRequests } from "./api-requests.ts";
import { openBareClient, type BareClient } from "./bare-client.ts";
import { makeArms, type Arm } from "./controller-arms.ts";
import { createGauges, Gauge, gaugeName, gaugePath } from "./gauge.ts";
import { startGaugeLoad, type GaugeLoad } from "./gauge-load.ts";
import { figureOf, percentile, rateOf, round2, type BenchOptions, type Figure } from "./measure.ts";
import { cpuMs, peakMemoryMiB, type PeerProcess } from "./peer-process.ts";

const ROUNDS = 3;
/** Changes before the measurement, because code is slow when it runs for the first time. */
const WARM_UP = 200;
const PACED = { count: 200, ratePerSecond: 100 };
const RAW_WRITERS = [1, 4, 16, 64];

/** The figures of one arm in one round. */
export interface Result {
  /** Objects changed and written per second, changed as fast as the server accepts. */
  readonly rate: number;
  /** Time from change to status in ms, at that speed and at a low rate of changes. */
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly pacedP50Ms: number;
  readonly pacedP99Ms: number;
  readonly callsPerReconcile: number;
  /** CPU time of all processes of the arm. NaN where it cannot be measured. */
  readonly cpuMsPerReconcile: number;
  /** Peak memory of the largest process. NaN where it cannot be measured. */
  readonly peakMiB: number;
}

/** Changes every object's spec once and measures until its status follows, for Konverge and its peers in turn. */
export async function benchController({
  log,
  objects,
  arms: wanted,
}: BenchOptions): Promise<Figure[]> {
  const redis = await obtainRedis({ log });
  try {
    await using plane = await startControlPlane({ log });
    const client = createKubeClient({
      credentials: loadKubeCredentials({ kubeconfigPath: plane.kubeconfigPath }),
      gate: createLocalGate({ ratePerSecond: 1e6, burst: 1e6 }),
      userAgent: "konverge-bench",
    });
    const bare = openBareClient(plane.kubeconfig, Math.max(...RAW_WRITERS));
    log(`controller: creating ${objects} objects`);
    await createGauges(client, objects);
    const ceilings = await findCeiling(bare, objects);
    const load = await startGaugeLoad(client, bare);
    const arms = await makeArms(
      {
        redisUrl: redis.url,
        kubeconfigPath: plane.kubeconfigPath,
        objects,
        log: (line) => log(`controller: ${line}`),
      },
      wanted,
    );
    const results = new Map<Arm, Result[]>(arms.map((arm) => [arm, []]));
    for (let round = 1; round <= ROUNDS; round++) {
      for (const arm of arms) {
        if (arm.onceOnEvery !== undefined && round > 1) continue;
        const result = await runArm(arm, { client, load, objects });
        results.get(arm)?.push(result);
        log(`controller: round ${round}, ${arm.name}: ${describe(result)}`);
      }
    }
    await load.stop();
    await bare.close();
    await client.close();
    return [...ceilings, ...figuresOf(results, objects)];
  } finally {
    await redis.stop();
  }
}

/** Measures the status writes per second of raw writers, the upper limit of any controller. */
async function findCeiling(bare: BareClient, objects: number): Promise<Figure[]> {
  const figures: Figure[] = [];
  let seen = 0;
  for (const writers of RAW_WRITERS) {
    const rates: number[] = [];
    for (let round = 0; round <= ROUNDS; round++) {
      seen += 1;
      const rate = await rateOf(Math.min(objects, 1_000), writers, (_, n) =>
        bare.send("PATCH", `${gaugePath(gaugeName(n))}/status`, { status: { seen } }),
      );
      if (round > 0) rates.push(rate);
    }
    figures.push(
      figureOf({
        suite: "controller",
        case: `server saturates: ${writers} raw kept-alive writers of status, no controller`,
        metric: "writes",
        unit: "1/s",
        ours: rates,
      }),
    );
  }
  return figures;
}

interface Bench {
  readonly client: KubeClient;
  readonly load: GaugeLoad;
  readonly objects: number;
}

/** Changes objects while the arm runs, and measures it. */
export async function runArm(arm: Arm, { client, load, objects }: Bench): Promise<Result> {
  const processes = await arm.start();
  try {
    const by = arm.name;
    const share = arm.onceOnEvery ?? 1;
    const count = Math.max(1, Math.floor(objects / share));
    await load.change({ by, count: Math.max(1, Math.floor(Math.min(count, WARM_UP / share))) });
    const paced = await load.change({
      by,
      count: Math.max(1, Math.floor(Math.min(count, PACED.count / share))),
      ratePerSecond: PACED.ratePerSecond,
    });
    const before = {
      requests: await countRequests(client, Gauge.resource),
      cpuMs: sumCpu(processes),
    };
    const { tookMs, latenciesMs } = await load.change({ by, count });
    const requests = (await countRequests(client, Gauge.resource)) - before.requests;
    return {
      rate: (count * 1_000) / tookMs,
      p50Ms: percentile(latenciesMs, 0.5),
      p99Ms: percentile(latenciesMs, 0.99),
      pacedP50Ms: percentile(paced.latenciesMs, 0.5),
      pacedP99Ms: percentile(paced.latenciesMs, 0.99),
      // Each change was one request of the benchmark itself.
      callsPerReconcile: (requests - count) / count,
      cpuMsPerReconcile: (sumCpu(processes) - before.cpuMs) / count,
      peakMiB: Math.max(...processes.map(({ pid }) => peakMemoryMiB(pid) ?? Number.NaN)),
    };
  } finally {
    await Promise.all(processes.map((each) => each.stop()));
  }
}

function sumCpu(processes: readonly PeerProcess[]): number {
  return processes.reduce((sum, { pid }) => sum + (cpuMs(pid) ?? Number.NaN), 0);
}

export function describe(result: Result): string {
  const { rate, p50Ms, p99Ms, pacedP50Ms, callsPerReconcile, cpuMsPerReconcile, peakMiB } = result;
  return [
    `${Math.round(rate)}/s`,
    `p50 ${round2(p50Ms)} p99 ${round2(p99Ms)} ms`,
    `paced p50 ${round2(pacedP50Ms)} ms`,
    `${round2(callsPerReconcile)} calls and ${round2(cpuMsPerReconcile)} ms of CPU per reconcile`,
    `${Math.round(peakMiB)} MiB`,
  ].join(", ");
}

const METRICS: readonly {
  readonly name: string;
  readonly unit: string;
  readonly read: (result: Result) => number;
}[] = [
  { name: "changed to written, throughput", unit: "1/s", read: ({ rate }) => rate },
  { name: "changed to written, p50", unit: "ms", read: ({ p50Ms }) => p50Ms },
  { name: "changed to written, p99", unit: "ms", read: ({ p99Ms }) => p99Ms },
  {
    name: `at ${PACED.ratePerSecond} changes/s, p50`,
    unit: "ms",
    read: ({ pacedP50Ms }) => pacedP50Ms,
  },
  {
    name: `at ${PACED.ratePerSecond} changes/s, p99`,
    unit: "ms",
    read: ({ pacedP99Ms }) => pacedP99Ms,
  },
  {
    name: "API calls per reconcile",
    unit: "calls",
    read: ({ callsPerReconcile }) => callsPerReconcile,
  },
  {
    name: "CPU per reconcile, all processes",
    unit: "ms",
    read: ({ cpuMsPerReconcile }) => cpuMsPerReconcile,
  },
  { name: "peak memory of the largest process", unit: "MiB", read: ({ peakMiB }) => peakMiB },
];
const THROUGHPUT = METRICS[0]?.name;
/** The minimum throughput relative to a peer, by the start of its name. */
const GOALS: readonly (readonly [string, number])[] = [
  ["controller-runtime, 16 at a time, no", 0.9],
  ["client-node", 4],
];
const MAX_MIB = 200;

/** Konverge's arms alone; then, for each peer, Konverge with one worker next to it. */
function figuresOf(results: ReadonlyMap<Arm, readonly Result[]>, objects: number): Figure[] {
  const figures: Figure[] = [];
  const ours = [...results].find(([arm]) => arm.ours)?.[1] ?? [];
  for (const [arm, runs] of results) {
    for (const { name, unit, read } of METRICS) {
      const common = { suite: "controller", metric: name, unit };
      const values = runs.map(read);
      // An arm with only a first round is compared with Konverge's first round.
      const mine = ours.map(read).slice(0, values.length);
      if (values.some(Number.isNaN) || mine.some(Number.isNaN)) continue;
      if (arm.ours) {
        figures.push(
          figureOf({
            ...common,
            case: `${objects} objects, ${arm.name}`,
            ours: values,
            goal: unit === "MiB" ? MAX_MIB : null,
            goalIs: "most",
          }),
        );
        continue;
      }
      // Without an arm of Konverge, the peer is shown alone.
      if (mine.length === 0) {
        figures.push(
          figureOf({ ...common, case: `${objects} objects, ${arm.name}`, ours: values }),
        );
        continue;
      }
      const goal = GOALS.find(([start]) => name === THROUGHPUT && arm.name.startsWith(start))?.[1];
      figures.push(
        figureOf({
          ...common,
          case: `${objects} objects, ours with 1 worker next to a peer`,
          ours: mine,
          peer: { name: arm.name, values },
          goal: goal ?? null,
        }),
      );
    }
  }
  return figures;
}
