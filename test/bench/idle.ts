import { setTimeout as sleep } from "node:timers/promises";
import { createWorkQueue, QueueProcess, type WorkQueue } from "@konverge/queue";
import { figureOf, type BenchOptions, type Figure } from "./measure.ts";
import { startOwnRedis, type OwnRedis } from "./own-redis.ts";

const SMALL = 20;
const LARGE = 80;
const CONTROLLERS = 30;
/** The fleet whose load on Redis is calculated. */
const FLEET = 1_000;
/** Time from the start until elections and first rounds are over, in ms. */
const SETTLE_MS = 15_000;
/** Measuring time, in ms. Covers many rounds of a process, but not the search for jobs that a worker makes every 600 s. */
const WINDOW_MS = 120_000;
/** Time in which the Redis is measured without a fleet, in ms. */
const EMPTY_MS = 10_000;

interface Load {
  /** Per second, with those that scripts call. */
  readonly commands: number;
  /** Per second. */
  readonly cpuUs: number;
}

/**
 * Measures the load on Redis of two fleets of worker processes with 30 controllers each and nothing to do, and calculates
 * that of 1,000 processes from both: one elected process per controller does a part that does not depend on their number.
 */
export async function benchIdle({ log }: BenchOptions): Promise<Figure[]> {
  await using own = await startOwnRedis(log);
  const queues: WorkQueue[] = [];
  const grow = async (processes: number) => {
    while (queues.length < processes * CONTROLLERS) queues.push(...openProcess(own.url));
    await sleep(SETTLE_MS);
    return await loadOf(own);
  };
  const none = await loadOf(own, EMPTY_MS);
  const small = await grow(SMALL);
  const large = await grow(LARGE);
  const connections = (await countClients(own)) - 1;
  await Promise.all(queues.map((queue) => queue.close()));
  const perProcess = (what: keyof Load) => (large[what] - small[what]) / (LARGE - SMALL);
  const ofFleet = (what: keyof Load) =>
    large[what] - none[what] + (FLEET - LARGE) * perProcess(what);
  const what = {
    suite: "idle",
    case: `idle processes with ${CONTROLLERS} controllers each`,
    goalIs: "most",
  } as const;
  return [
    figureOf({
      ...what,
      metric: "commands of Redis per further process, with those of scripts",
      unit: "/s",
      ours: [perProcess("commands")],
    }),
    figureOf({
      ...what,
      metric: "connections per process",
      unit: "",
      ours: [connections / LARGE],
      goal: 4,
    }),
    figureOf({
      ...what,
      metric: `commands of Redis with ${FLEET} processes, with those of scripts`,
      unit: "/s",
      ours: [ofFleet("commands")],
    }),
    figureOf({
      ...what,
      metric: `CPU of Redis with ${FLEET} processes`,
      unit: "% of a core",
      ours: [ofFleet("cpuUs") / 10_000],
      goal: 5,
    }),
  ];
}

function openProcess(url: string): WorkQueue[] {
  const redis = { url };
  const process = new QueueProcess(redis);
  return Array.from({ length: CONTROLLERS }, (_, n) => {
    const queue = createWorkQueue({
      redis,
      prefix: "bench",
      cluster: "default",
      controller: `controller-${n}`,
      process,
    });
    queue.work({
      workerId: "bench",
      concurrency: 10,
      handle: async () => ({ outcome: { kind: "done" } }),
      onClosed: () => undefined,
      onError: (error) => {
        throw error;
      },
    });
    return queue;
  });
}

async function loadOf(own: OwnRedis, ms = WINDOW_MS): Promise<Load> {
  const from = await own.totals();
  await sleep(ms);
  const to = await own.totals();
  const perSecond = (count: number) => (1_000 * count) / ms;
  return {
    commands: perSecond(to.commands - from.commands),
    cpuUs: perSecond(to.cpuUs - from.cpuUs),
  };
}

async function countClients({ redis }: OwnRedis): Promise<number> {
  const [, connected] = /^connected_clients:(\d+)/m.exec(await redis.info("clients")) ?? [];
  return Number(connected);
}
