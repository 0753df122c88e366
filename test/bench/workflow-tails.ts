import { defineWorkflow, openWorkflows, type Workflow } from "@konverge/workflow";
import { z } from "zod";
import { figureOf, percentile, type Figure } from "./measure.ts";
import type { OwnRedis } from "./own-redis.ts";
import { openRuns, startMany } from "./workflow-sides.ts";

const MIXED_RUNS = 1_000;
/** Runs in progress at a time. */
const MIXED_WIDTH = 20;
const MIXED_GOAL = 2;
const PROBES = 300;
const REFUSED = 1_000;
const UNWANTED = 1_100;
/** 1,100 of them are 64 MB. Beyond 1 MiB, a run rejects them. */
const UNWANTED_CHARS = 58_000;
const NEIGHBOR_GOAL = 1.1;

/** Measures what the slowest runs pay: for a rolling deployment, and for another run that receives useless signals. */
export async function benchTails(own: OwnRedis, log: (line: string) => void): Promise<Figure[]> {
  log("workflow: p99 of a mixed fleet");
  await mixedP99(own, [2, 2]);
  const unmixed = await mixedP99(own, [2, 2]);
  const mixed = await mixedP99(own, [1, 2]);
  const what = { suite: "workflow", unit: "ms", goalIs: "most" } as const;
  const figures = [
    figureOf({
      ...what,
      case: `${MIXED_RUNS} runs of two versions, ${MIXED_WIDTH} at a time`,
      metric: "p99 from start to end, an old and a new worker",
      ours: [mixed],
      peer: { name: "two new workers", values: [unmixed] },
      goal: MIXED_GOAL,
    }),
  ];
  await neighborP99(own, undefined);
  const quiet = await neighborP99(own, undefined);
  for (const noise of ["refused", "unwanted"] as const) {
    log(`workflow: p99 of other runs beside ${noise} signals`);
    const count = noise === "refused" ? "1,000 refused signals" : "64 MB of unwanted signals";
    figures.push(
      figureOf({
        ...what,
        case: `${count} to another run`,
        metric: "p99 from signal to the next step's body",
        ours: [await neighborP99(own, noise)],
        peer: { name: "no such signals", values: [quiet] },
        goal: NEIGHBOR_GOAL,
      }),
    );
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

/**
 * Returns the p99 of signals to waiting runs, one at a time, while another run receives signals that it does not consume. They are
 * sent from this process, as fast as it can.
 */
async function neighborP99(
  { url, redis }: OwnRedis,
  noise: "refused" | "unwanted" | undefined,
): Promise<number> {
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
  const noisy = openWorkflows({ redis: { url }, prefix });
  workflows.work({ workflows: [waits, flooded] });
  await workflows.start(flooded, undefined, { id: "victim" });
  for (let n = 0; n < PROBES; n += 1) await workflows.start(waits, undefined, { id: `run-${n}` });
  for (let n = 0; n < PROBES; n += 1) await parked(`run-${n}`);
  const victim = { workflow: flooded.name, id: "victim" };
  const text = "x".repeat(UNWANTED_CHARS);
  const flood =
    noise === undefined
      ? undefined
      : noise === "refused"
        ? startMany(REFUSED, () => noisy.signal(victim, "number", { payload: "text" }))
        : startMany(UNWANTED, async () => {
            // A full buffer rejects the signal, after it was sent.
            await noisy.signal(victim, "other", { payload: text }).catch(() => undefined);
          });
  for (let n = 0; n < PROBES; n += 1) {
    const before = values.length;
    sentMs = performance.now();
    await workflows.signal({ workflow: waits.name, id: `run-${n}` }, "go");
    while (values.length === before) await new Promise((resolve) => setTimeout(resolve, 1));
  }
  await flood;
  await Promise.all([noisy.close(), workflows.close()]);
  return percentile(values, 0.99);
}
