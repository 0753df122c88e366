import { createLocalGate, type AdmitRequest, guardLimits, type Gate } from "@konverge/core";
import { createGuard } from "@konverge/guard";
import { guardKeys } from "../../libs/guard/src/guard-keys.ts";
import { createGuardStore } from "../../libs/guard/src/guard-store.ts";
import { startControlPlane } from "@konverge/infra-envtest";
import { obtainRedis } from "@konverge/infra-redis";
import { createKubeClient, loadKubeCredentials } from "@konverge/kube";
import { ConfigMap } from "@konverge/kube/kinds";
import { Redis } from "ioredis";
import { quietAsk } from "../sim/quiet-ask.ts";
import { largestExcess } from "../sim/largest-excess.ts";
import {
  flexibleLimiter,
  jitterAlone,
  ourGuard,
  ownBreaker,
  plainBucket,
  playLoad,
  type LoadResult,
  type MakeArm,
} from "./guard-arms.ts";
import { contest, median, rateOf, round2, type BenchOptions, type Figure } from "./measure.ts";

const RATE = 500;
const BURST = 500;
const ROUNDS = 3;
const binding = {
  limits: guardLimits({ ratePerSecond: RATE, burst: BURST }),
  workers: 4,
  concurrency: 10,
  forMs: 5_000,
  // The peers' buckets start full; after the warm-up they are empty.
  warmUpMs: 2_000,
  serviceMs: 5,
};
const failing = {
  limits: guardLimits({ ratePerSecond: 2_000, burst: 2_000 }),
  workers: 8,
  concurrency: 8,
  forMs: 12_000,
  warmUpMs: 1_000,
  serviceMs: 5,
  outage: [2_000, 10_000],
} as const;

/** Measures the guard's cost and its limits, next to the usual alternatives. */
export async function benchGuard({ log }: BenchOptions): Promise<Figure[]> {
  const redis = await obtainRedis({ log });
  try {
    return [
      ...(await benchCost(redis.url, log)),
      ...(await benchLimiters(redis.url, log)),
      ...(await benchOutages(redis.url, log)),
      ...(await benchThroughput(redis.url, log)),
    ];
  } finally {
    await redis.stop();
  }
}

const alone = { suite: "guard", peer: null, peerName: null, ratio: null } as const;

async function benchCost(redisUrl: string, log: (line: string) => void): Promise<Figure[]> {
  log("guard: cost, 4 workers with 10 calls at a time, 500/s");
  const { callsPerSecond, roundTripsPerCall } = await playLoad({
    make: ourGuard,
    redisUrl,
    ...binding,
  });
  const cpuUs = await cpuPerAdmit(redisUrl);
  const name = "4 workers, 10 calls at a time, rate 500/s binds";
  return [
    {
      ...alone,
      case: "40,000 admits, 100 at a time",
      metric: "Redis CPU per admit",
      unit: "us",
      ours: cpuUs,
      goal: 40,
      ok: cpuUs <= 40,
    },
    {
      ...alone,
      case: name,
      metric: "Redis round trips per call",
      unit: "trips",
      ours: round2(roundTripsPerCall),
      goal: 0.25,
      ok: roundTripsPerCall <= 0.25,
    },
    {
      ...alone,
      case: name,
      metric: "achieved / configured rate",
      unit: "",
      ours: round2(callsPerSecond / RATE),
      goal: 0.9,
      ok: callsPerSecond / RATE >= 0.9,
    },
  ];
}

/** CPU per admit in us, by the statistics of a busy Redis. An idle Redis wakes up for each admit, which adds to the figure. */
async function cpuPerAdmit(url: string): Promise<number> {
  const redis = new Redis(url);
  const store = createGuardStore(redis, guardKeys(`bench-${crypto.randomUUID()}`, "bench"));
  await store.configure(guardLimits({ ratePerSecond: 20_000, burst: 20_000 }), "bench");
  const ask = (n: number): AdmitRequest => ({
    ...quietAsk,
    worker: `worker-${n % 4}`,
    ok: 5,
    want: 5,
    need: 1,
    rank: 1,
    turn: "once",
  });
  await rateOf(4_000, 100, (_, n) => store.admit(ask(n)));
  await redis.config("RESETSTAT");
  await rateOf(40_000, 100, (_, n) => store.admit(ask(n)));
  const stats = /cmdstat_evalsha:calls=\d+,usec=\d+,usec_per_call=([\d.]+)/.exec(
    await redis.info("commandstats"),
  );
  await redis.quit();
  return Number(stats?.[1]);
}

async function benchLimiters(redisUrl: string, log: (line: string) => void): Promise<Figure[]> {
  const play = (make: MakeArm) => playLoad({ make, redisUrl, ...binding });
  const peers = [
    { name: "rate-limiter-flexible with Redis", make: flexibleLimiter },
    { name: "plain Lua token bucket", make: plainBucket },
  ];
  const ours = await rounds(() => play(ourGuard));
  const figures: Figure[] = [];
  for (const { name, make } of peers) {
    log(`guard: ${name}`);
    const theirs = await rounds(() => play(make));
    const figure = (
      metric: string,
      unit: string,
      read: (result: LoadResult) => number,
      isOk: (ours: number, ratio: number) => boolean,
    ): Figure => {
      const [mine, peer] = [median(ours.map(read)), median(theirs.map(read))];
      const ratio = round2(mine / peer);
      return {
        suite: "guard",
        case: "4 workers, 10 calls at a time, rate 500/s, burst 500",
        metric,
        unit,
        ours: round2(mine),
        peer: round2(peer),
        peerName: name,
        ratio,
        goal: null,
        ok: isOk(mine, ratio),
      };
    };
    figures.push(
      figure(
        "Redis round trips per call",
        "trips",
        (run) => run.roundTripsPerCall,
        (_, r) => r < 1,
      ),
      figure("calls beyond rate * T, worst window", "calls", excessOf, (mine) => mine <= BURST),
      figure(
        "achieved rate",
        "1/s",
        (run) => run.callsPerSecond,
        (mine) => mine >= 0.9 * RATE,
      ),
    );
  }
  return figures;
}

async function benchOutages(redisUrl: string, log: (line: string) => void): Promise<Figure[]> {
  const play = (make: MakeArm) => playLoad({ make, redisUrl, ...failing });
  const sent = (runs: readonly LoadResult[]) => median(runs.map((run) => run.sentInOutage));
  const ours = sent(await rounds(() => play(ourGuard)));
  const figures: Figure[] = [];
  for (const { name, make } of [
    { name: "cockatiel, a breaker per process", make: ownBreaker },
    { name: "jittered retries alone", make: jitterAlone },
  ]) {
    log(`guard: an outage of 8 s, ${name}`);
    const peer = sent(await rounds(() => play(make)));
    figures.push({
      suite: "guard",
      case: "outage of 8 s, 8 workers, 8 calls at a time",
      metric: "calls sent during the outage",
      unit: "calls",
      ours,
      peer,
      peerName: name,
      ratio: round2(ours / peer),
      goal: null,
      ok: ours < peer,
    });
  }
  return figures;
}

const WIDTH = 16;
const OPERATIONS = 1_200;

/** Measures the guard's share of the time of each call: read-modify-write on a real API server at a rate that does not limit. */
async function benchThroughput(redisUrl: string, log: (line: string) => void): Promise<Figure[]> {
  await using plane = await startControlPlane({ log });
  await using guard = await createGuard({
    redis: { url: redisUrl },
    cluster: "bench",
    prefix: `bench-${crypto.randomUUID()}`,
    workerId: "bench",
    limits: { ratePerSecond: 20_000, burst: 20_000 },
  });
  const clientOf = (gate: Gate) =>
    createKubeClient({
      credentials: loadKubeCredentials({ kubeconfigPath: plane.kubeconfigPath }),
      gate,
      userAgent: "konverge-bench",
    });
  const guarded = clientOf(guard);
  const free = clientOf(createLocalGate({ ratePerSecond: 1e6, burst: 1e6 }));
  const namespace = "default";
  const nameOf = (lane: number) => `guarded-${lane}`;
  try {
    for (let lane = 0; lane < WIDTH; lane++) {
      await free.create(ConfigMap, { metadata: { namespace, name: nameOf(lane) }, data: {} });
    }
    let count = 0;
    const side = (client: typeof free) => () =>
      rateOf(OPERATIONS, WIDTH, (lane) =>
        client.mutate(ConfigMap, { namespace, name: nameOf(lane) }, (draft) => {
          draft.data = { count: String(++count) };
        }),
      );
    log("guard: throughput on a real API server, with and without");
    return await contest({
      suite: "guard",
      case: "read-modify-write, 16 at a time, rate 20,000/s",
      metric: "rate",
      unit: "1/s",
      rounds: 25,
      ours: side(guarded),
      peers: [{ name: "the same without the guard", goal: 0.95, side: side(free) }],
    });
  } finally {
    await guarded.close();
    await free.close();
  }
}

const excessOf = ({ sentMs }: LoadResult) =>
  largestExcess(
    sentMs.map((atMs) => ({ atMs, tokens: 1 })),
    RATE,
  );

async function rounds(play: () => Promise<LoadResult>): Promise<LoadResult[]> {
  const results: LoadResult[] = [];
  for (let round = 0; round < ROUNDS; round++) results.push(await play());
  return results;
}
