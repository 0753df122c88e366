import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { defineWorkflow, openWorkflows, type Workflow } from "@konverge/workflow";
import { z } from "zod";
import { figureOf, percentile, type Figure } from "./measure.ts";
import type { OwnRedis } from "./own-redis.ts";
import type { NoiseConfig } from "./signal-noise.ts";
import { openRuns } from "./workflow-sides.ts";

const MIXED_RUNS = 1_000;
/** Runs in progress at a time. */
const MIXED_WIDTH = 20;
const MIXED_GOAL = 2;
const MIXED_ROUNDS = 5;
/** Signals to other runs of a round without noise. */
const PROBES = 400;
const NEIGHBOR_GOAL = 1.1;
const NEIGHBOR_ROUNDS = 5;
const FROM_SOURCE = { execArgv: ["--conditions=@konverge/source"] };
const SENDER = fileURLToPath(new URL("signal-noise.ts", import.meta.url));

type Noise = Pick<NoiseConfig, "signal" | "count" | "chars" | "perSecond"> & {
  readonly text: string;
};

const NOISE: Readonly<Record<"refused" | "unwanted", Noise>> = {
  refused: {
    text: "1,000 refused signals",
    signal: "number",
    count: 1_000,
    chars: 4,
    perSecond: 400,
  },
  /** Beyond 1 MiB, a run rejects them. */
  unwanted: {
    text: "64 MB of unwanted signals",
    signal: "other",
    count: 1_100,
    chars: 58_000,
    perSecond: 400,
  },
};

/** Measures what the slowest runs pay: for a rolling deployment, and for another run that receives useless signals. */
export async function benchTails(own: OwnRedis, log: (line: string) => void): Promise<Figure[]> {
  log("workflow: p99 of a mixed fleet");
  const mixed: number[] = [];
  const unmixed: number[] = [];
  await mixedP99(own, [2, 2]);
  for (let round = 0; round < MIXED_ROUNDS; round += 1) {
    unmixed.push(await mixedP99(own, [2, 2]));
    mixed.push(await mixedP99(own, [1, 2]));
  }
  const what = { suite: "workflow", unit: "ms", goalIs: "most" } as const;
  const figures = [
    figureOf({
      ...what,
      case: `${MIXED_RUNS} runs of two versions, ${MIXED_WIDTH} at a time`,
      metric: "p99 from start to end, an old and a new worker",
      ours: mixed,
      peer: { name: "two new workers", values: unmixed },
      goal: MIXED_GOAL,
    }),
  ];
  for (const noise of ["refused", "unwanted"] as const) {
    log(`workflow: p99 of other runs beside ${noise} signals`);
    const [quiet, signals, values] = await neighborP99(own, NOISE[noise]);
    const beside = (peer: string, of: readonly number[]) =>
      figureOf({
        ...what,
        case: `${NOISE[noise].text} to another run`,
        metric: "p99 from signal to the next step's body",
        ours: signals,
        peer: { name: peer, values: of },
        goal: NEIGHBOR_GOAL,
      });
    figures.push(beside("no such signals", quiet), beside("as many SET of this size", values));
  }
  return figures;
}

/** Returns the p99 of runs of versions 1 and 2, executed by two workers with these versions. */
async function mixedP99({ url, redis }: OwnRedis, versions: readonly number[]): Promise<number> {
  const values: number[] = [];
  const startedMs = new Map<string, number>();
  const define = (version: number): Workflow<undefined, void> =>
    defineWorkflow(
      "rolling",
      { version, ...(version === 2 ? { accepts: [1] } : {}) },
      async (w) => {
        await w.step("first", async () => 1);
        await w.sleep("pause", 1);
        await w.step("last", async () => {
          values.push(performance.now() - (startedMs.get(w.runId) ?? Number.NaN));
        });
      },
    );
  const { workflows, prefix, ended } = openRuns(url, redis, define(2));
  const workers = versions.map((version, n) => {
    const runs = openWorkflows({ redis: { url }, prefix });
    runs.work({ workflows: [define(version)], workerId: `worker-${n}` });
    return runs;
  });
  let next = 0;
  const lane = async () => {
    while (next < MIXED_RUNS) {
      const n = next++;
      const id = `run-${n}`;
      startedMs.set(id, performance.now());
      await workflows.start(define(1 + (n % 2)), undefined, { id });
      await ended(n - MIXED_WIDTH);
    }
  };
  await Promise.all(Array.from({ length: MIXED_WIDTH }, lane));
  await ended(MIXED_RUNS);
  await Promise.all([...workers, workflows].map((runs) => runs.close()));
  return percentile(values, 0.99);
}

/** Returns the p99 of signals to waiting runs for each round: alone, beside the noise, and beside values of the same size. */
async function neighborP99(
  own: OwnRedis,
  noise: Noise,
): Promise<[quiet: number[], signals: number[], values: number[]]> {
  const rounds: [number[], number[], number[]] = [[], [], []];
  for (let round = 0; round <= NEIGHBOR_ROUNDS; round += 1) {
    for (const [at, as] of ([undefined, "signals", "values"] as const).entries()) {
      const p99 = await probe(own, noise, as);
      // The first round warms up.
      if (round > 0) rounds[at]?.push(p99);
    }
  }
  return rounds;
}

/** Signals waiting runs one at a time, while another process sends noise. */
async function probe(
  { url, redis }: OwnRedis,
  { signal, count, chars, perSecond }: Noise,
  as: NoiseConfig["as"] | undefined,
): Promise<number> {
  await redis.flushall();
  const values: number[] = [];
  let sentMs = 0;
  const waits: Workflow<undefined, void> = defineWorkflow("waits", { version: 1 }, async (w) => {
    await w.signal("go");
    await w.step("gone", async () => void values.push(performance.now() - sentMs));
  });
  const flooded: Workflow<undefined> = defineWorkflow(
    "flooded",
    { version: 1 },
    async (w) => await w.signal("number", { schema: z.number() }),
  );
  const { workflows, parked, prefix } = openRuns(url, redis, waits);
  workflows.work({ workflows: [waits, flooded] });
  const victim = { workflow: flooded.name, id: "victim" };
  await workflows.start(flooded, undefined, { id: victim.id });
  const config = { url, prefix, victim, signal, count, chars, perSecond };
  const sender =
    as && fork(SENDER, [JSON.stringify({ ...config, as } satisfies NoiseConfig)], FROM_SOURCE);
  if (sender !== undefined) await once(sender, "message");
  sender?.send("go");
  const isSent = () => (sender === undefined ? values.length >= PROBES : sender.exitCode !== null);
  for (let n = 0; !isSent(); n += 1) {
    const before = values.length;
    await workflows.start(waits, undefined, { id: `run-${n}` });
    await parked(`run-${n}`);
    sentMs = performance.now();
    await workflows.signal({ workflow: waits.name, id: `run-${n}` }, "go");
    while (values.length === before) await new Promise((resolve) => setTimeout(resolve, 1));
  }
  await workflows.close();
  return percentile(values, 0.99);
}
