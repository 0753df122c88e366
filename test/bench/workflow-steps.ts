import { claimScript } from "../../libs/workflow/src/store/scripts/claim.ts";
import { commitScript } from "../../libs/workflow/src/store/scripts/commit.ts";
import { commitStepsScript } from "../../libs/workflow/src/store/scripts/commit-steps.ts";
import { leaveScript } from "../../libs/workflow/src/store/scripts/leave.ts";
import { noteScript } from "../../libs/workflow/src/store/scripts/note.ts";
import { figureOf, type Figure } from "./measure.ts";
import { startOperationTape } from "./operation-tape.ts";
import type { OwnRedis, RedisTotals } from "./own-redis.ts";
import { openFiveSteps, openFlow, startMany, STEPS, type StepsSide } from "./workflow-sides.ts";

const RUNS = 1_000;
const ROUNDS = 5;
const COUNTED = 200;
const MOST_ROUND_TRIPS = 7;
const WIDTHS = [1, 16, 50];
const PEER = `BullMQ flow of ${STEPS} jobs`;

interface Round {
  readonly startsPerS: number;
  readonly runsPerS: number;
  /** The cost of one run or chain in Redis, from its start to its end. */
  readonly cost: RedisTotals;
  /** The worker's CPU time for one run or chain, without its start. */
  readonly workerCpuUs: number;
}

/** Measures a run of five steps without waits, next to five jobs that wait for each other. One process runs both. */
export async function benchSteps(own: OwnRedis, log: (line: string) => void): Promise<Figure[]> {
  const figures: Figure[] = [await countRoundTrips(own)];
  for (const width of WIDTHS) {
    log(`workflow: runs of ${STEPS} steps, ${width} at a time`);
    const ours: Round[] = [];
    const flows: Round[] = [];
    for (let round = 0; round <= ROUNDS; round++) {
      const mine = await measureRound(own, openFiveSteps(own.url, own.redis), width);
      const theirs = await measureRound(own, openFlow(own.url), width);
      // The first round warms up.
      if (round === 0) continue;
      ours.push(mine);
      flows.push(theirs);
    }
    const figure = (
      metric: string,
      unit: string,
      read: (round: Round) => number,
      goal: { readonly goal?: number; readonly goalIs?: "most" } = {},
    ) =>
      figureOf({
        suite: "workflow",
        case: `run of ${STEPS} steps, ${width} at a time`,
        metric,
        unit,
        ours: ours.map(read),
        peer: { name: PEER, values: flows.map(read) },
        ...goal,
      });
    figures.push(
      // One at a time, the round trips wait for each other: each step is recorded before the next begins.
      figure("runs", "1/s", ({ runsPerS }) => runsPerS, width === 1 ? {} : { goal: 1 }),
      figure("commits and jobs", "1/s", ({ runsPerS }) => runsPerS * STEPS),
    );
    if (width !== WIDTHS.at(-1)) continue;
    figures.push(
      figure("starts, 200 at a time", "1/s", ({ startsPerS }) => startsPerS),
      figure("script calls per run, with start and queue", "calls", ({ cost }) => cost.scripts),
      figure("commands per run, including those of scripts", "calls", ({ cost }) => cost.commands),
      figure("Redis CPU per run", "us", ({ cost }) => cost.cpuUs),
      figure("CPU of the worker per run", "us", ({ workerCpuUs }) => workerCpuUs),
    );
  }
  return figures;
}

async function measureRound(own: OwnRedis, side: StepsSide, width: number): Promise<Round> {
  await own.redis.flushall();
  const before = await own.totals();
  const startedMs = performance.now();
  await startMany(RUNS, () => side.start());
  const workedMs = performance.now();
  const cpu = process.cpuUsage();
  await side.work(RUNS, width);
  const endedMs = performance.now();
  const { user, system } = process.cpuUsage(cpu);
  const after = await own.totals();
  await side.close();
  return {
    startsPerS: (RUNS * 1_000) / (workedMs - startedMs),
    runsPerS: (RUNS * 1_000) / (endedMs - workedMs),
    cost: {
      scripts: (after.scripts - before.scripts) / RUNS,
      commands: (after.commands - before.commands) / RUNS,
      cpuUs: (after.cpuUs - before.cpuUs) / RUNS,
    },
    workerCpuUs: (user + system) / RUNS,
  };
}

/** Counts the round trips of the workflow engine to Redis, besides those of the queue's job, where commands are sent. */
async function countRoundTrips({ url, redis }: OwnRedis): Promise<Figure> {
  const scripts = [claimScript, commitScript, commitStepsScript, noteScript, leaveScript];
  const tape = startOperationTape(new Map(scripts.map(({ sha, name }) => [sha, name])));
  const own = new Set(scripts.map(({ name }) => name));
  const side = openFiveSteps(url, redis);
  try {
    await startMany(COUNTED, () => side.start());
    tape.take();
    await side.work(COUNTED, 1);
    const calls = tape.take().filter(({ name }) => own.has(name)).length;
    return figureOf({
      suite: "workflow",
      case: `run of ${STEPS} steps, 1 at a time`,
      metric: "round trips to Redis, besides one job of the queue",
      unit: "calls",
      ours: [calls / COUNTED],
      goal: MOST_ROUND_TRIPS,
      goalIs: "most",
    });
  } finally {
    tape.stop();
    await side.close();
  }
}
