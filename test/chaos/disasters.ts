import { CONTROLLERS, LEASE_MS } from "./fleet-contract.ts";
import type { Fleet, FleetWorker } from "./fleet.ts";
import { FORGOTTEN, openRogue, ROGUE_JOB } from "./rogue-queue.ts";

/** A disturbance of a running fleet; over when it resolves. */
type Disaster = (fleet: Fleet, random: () => number) => Promise<void>;

const HOUR_MS = 3_600_000;
const SHARE_AT_ONCE = 0.4;
/** Longer than the leases of a worker. */
const tooLong = (random: () => number): number => LEASE_MS * (1.2 + random() * 0.8);
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
/** Another disaster may affect all of them for some time. */
const pick = async ({ workers }: Fleet, random: () => number): Promise<FleetWorker> => {
  for (;;) {
    const living = [...workers];
    const worker = living[Math.floor(random() * living.length)];
    if (worker !== undefined) return worker;
    await pause(20);
  }
};

/** Disturbs one worker's network, for longer or shorter than its leases. */
const ofNetwork =
  (net: "redisNet" | "apiNet", how: "cut" | "hold" | "delay"): Disaster =>
  async (fleet, random) => {
    const { [net]: proxy } = await pick(fleet, random);
    if (how === "delay") proxy.delay(50 + random() * 150);
    else proxy[how]();
    await pause(random() < 0.3 ? 300 : tooLong(random));
    proxy.heal();
  };

const killWorker: Disaster = async (fleet, random) => {
  const worker = await pick(fleet, random);
  await worker.end("SIGKILL");
  await fleet.startWorker();
};

const killAll: Disaster = async (fleet) => {
  const dead = [...fleet.workers];
  await Promise.all(dead.map((worker) => worker.end("SIGKILL")));
  await Promise.all(dead.map(() => fleet.startWorker()));
};

const stopWorker: Disaster = async (fleet, random) => {
  const { child } = await pick(fleet, random);
  child.signal("SIGSTOP");
  await pause(tooLong(random));
  child.signal("SIGCONT");
};

const restartRedis: Disaster = async (fleet, random) => {
  await fleet.killRedis();
  await pause(random() * 1_500);
  await fleet.restartRedis();
};

const restartApiServer: Disaster = async ({ plane }, random) => {
  await plane.kill();
  await pause(random() * 1_500);
  await plane.start();
};

const loseAnswers: Disaster = async ({ plane }) => {
  plane.faults?.(true);
  await pause(2_500);
  plane.faults?.(false);
};

/**
 * One worker starts with a clock that is an hour off, another's is changed while it runs, and both are corrected. Jobs that
 * the wrong clock delayed are then promoted, as an operator would do: BullMQ uses the workers' clocks (docs/guarantees.md).
 */
const stepClocks: Disaster = async (fleet, random) => {
  const off = () => (random() < 0.5 ? -1 : 1) * HOUR_MS;
  const running = await pick(fleet, random);
  const [first, second] = [off(), off()];
  running.setClock(first);
  const late = await fleet.startWorker({ clockOffsetMs: -first });
  await pause(700);
  late.setClock(second);
  await pause(700);
  running.setClock(0);
  await late.end("SIGTERM");
  for (const controller of CONTROLLERS) {
    const rogue = openRogue(fleet, controller);
    await rogue.promoteJobs({ count: 1_000 });
    await rogue.close();
  }
};

/** Job changes by dashboards and scripts outside Konverge. */
const meddle: Disaster = async (fleet, random) => {
  for (const controller of CONTROLLERS) {
    const rogue = openRogue(fleet, controller);
    try {
      for (let round = 0; round < 15; round++) {
        const jobs = await rogue.getJobs(["active", "prioritized", "delayed", "failed"], 0, 20);
        for (const job of jobs) {
          // A deleted job, or one in another state, rejects the change, as it would for a user.
          const refused = () => undefined;
          if (random() < 0.3) await job?.promote().catch(refused);
          if (random() < 0.3) await job?.retry("failed").catch(refused);
          // As "duplicate" of bull-board: without the deduplication that limits a key to one job.
          if (random() < 0.3) await rogue.add(ROGUE_JOB, job.data, FORGOTTEN).catch(refused);
        }
        await rogue.retryJobs({ count: 100 });
        await rogue.promoteJobs({ count: 100 });
        await pause(30);
      }
    } finally {
      await rogue.close();
    }
  }
};

const rollingRestart: Disaster = async (fleet) => {
  const old = [...fleet.workers];
  for (const worker of old) {
    await fleet.startWorker();
    await worker.end("SIGTERM");
  }
};

const DISASTERS: Readonly<Record<string, Disaster>> = {
  "a worker is killed": killWorker,
  "all workers are killed": killAll,
  "a worker is paused": stopWorker,
  "Redis is killed": restartRedis,
  "the API server is killed": restartApiServer,
  "the API server loses responses": loseAnswers,
  "a worker is cut off Redis": ofNetwork("redisNet", "cut"),
  "a worker's commands to Redis arrive late": ofNetwork("redisNet", "hold"),
  "a worker's network to Redis is slow": ofNetwork("redisNet", "delay"),
  "a worker is cut off the API server": ofNetwork("apiNet", "cut"),
  "a worker's calls arrive late": ofNetwork("apiNet", "hold"),
  "clocks are an hour wrong": stepClocks,
  "a dashboard changes the jobs": meddle,
  "the fleet is restarted one by one": rollingRestart,
};

/** Runs `count` disasters in random order, some of them two at a time. */
export function drawDisasters(random: () => number, count: number = Infinity): string[][] {
  const drawn = Object.keys(DISASTERS)
    .map((name) => ({ name, at: random() }))
    .toSorted((one, other) => one.at - other.at)
    .slice(0, count);
  const steps: string[][] = [];
  for (const { name } of drawn) {
    const last = steps.at(-1);
    if (last?.length === 1 && random() < SHARE_AT_ONCE) last.push(name);
    else steps.push([name]);
  }
  return steps;
}

/** Resolves when all are over. */
export async function strike(
  names: readonly string[],
  fleet: Fleet,
  random: () => number,
): Promise<void> {
  const disasters = names.map((name) => {
    const disaster = DISASTERS[name];
    if (disaster === undefined) throw new Error(`unknown disaster "${name}"`);
    return disaster;
  });
  await Promise.all(disasters.map((disaster) => disaster(fleet, random)));
}
