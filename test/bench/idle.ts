import { setTimeout as sleep } from "node:timers/promises";
import { createWorkQueue, QueueProcess } from "@konverge/queue";
import { figureOf, type BenchOptions, type Figure } from "./measure.ts";
import { startOwnRedis, type OwnRedis } from "./own-redis.ts";

const PROCESSES = 40;
const LONG_PROCESSES = 160;
const CONTROLLERS = 30;
/** The fleet whose load on Redis is calculated. */
const FLEET = 1_000;
/** Time from the start until elections and first rounds are over, in ms. */
const SETTLE_MS = 10_000;
/** A multiple of the slowest period that is per process, BullMQ's 30 s. */
const WINDOW_MS = 60_000;

/**
 * Measures the load on Redis of worker processes with 30 controllers each and nothing to do, and calculates that of 1,000
 * processes. What one elected process does for a controller is included once per process, so the result is an upper bound.
 */
export async function benchIdle({ log, long }: BenchOptions): Promise<Figure[]> {
  await using own = await startOwnRedis(log);
  const processes = long ? LONG_PROCESSES : PROCESSES;
  const without = await loadOf(own);
  const queues = Array.from({ length: processes }, () => openProcess(own.url)).flat();
  await sleep(SETTLE_MS);
  const [{ connected }, load] = [await clientsOf(own), await loadOf(own)];
  await Promise.all(queues.map((queue) => queue.close()));
  const perProcess = (total: number, base: number) => (total - base) / processes;
  const what = {
    suite: "idle",
    case: `${processes} idle processes with ${CONTROLLERS} controllers each`,
    goalIs: "most",
  } as const;
  return [
    figureOf({
      ...what,
      metric: "Redis commands per process, with those of scripts",
      unit: "/s",
      ours: [perProcess(load.commands, without.commands)],
    }),
    figureOf({
      ...what,
      metric: "connections per process",
      unit: "",
      ours: [(connected - 1) / processes],
      goal: 4,
    }),
    figureOf({
      ...what,
      metric: `CPU of Redis with ${FLEET} processes`,
      unit: "% of a core",
      ours: [perProcess(load.cpuUs, without.cpuUs) * FLEET * 1e-4],
      goal: 5,
    }),
  ];
}

function openProcess(url: string) {
  const redis = { url };
  const process = new QueueProcess(redis);
  return Array.from({ length: CONTROLLERS }, (_, n) => {
    const controller = `controller-${n}`;
    const queue = createWorkQueue({
      redis,
      prefix: "bench",
      cluster: "default",
      controller,
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

/** Returns the commands and the CPU time of Redis per second. */
async function loadOf(
  own: OwnRedis,
): Promise<{ readonly commands: number; readonly cpuUs: number }> {
  const from = await own.totals();
  await sleep(WINDOW_MS);
  const to = await own.totals();
  const perSecond = (count: number) => (1_000 * count) / WINDOW_MS;
  return {
    commands: perSecond(to.commands - from.commands),
    cpuUs: perSecond(to.cpuUs - from.cpuUs),
  };
}

async function clientsOf({ redis }: OwnRedis): Promise<{ readonly connected: number }> {
  const [, connected] = /^connected_clients:(\d+)/m.exec(await redis.info("clients")) ?? [];
  return { connected: Number(connected) };
}
