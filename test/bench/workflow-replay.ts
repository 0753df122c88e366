import { defineWorkflow, type Workflow } from "@konverge/workflow";
import { createRedisRunStore } from "../../libs/workflow/src/store/redis-run-store.ts";
import { runExecution } from "../../libs/workflow/src/execution/run-execution.ts";
import { figureOf, percentile, type Figure } from "./measure.ts";
import type { OwnRedis } from "./own-redis.ts";
import { openRuns } from "./workflow-sides.ts";
import { noChildren } from "../support/no-children.ts";

const SIZES = [50, 500];
const REPLAYS = 100;
const ROUNDS = 3;
const MOST_MS = 5;

interface Replay {
  readonly claimMs: number;
  readonly replayMs: number;
}

/**
 * Measures the replay of a run after a wait: from the claim, which reads all recorded results, to the body of the first
 * step without one.
 */
export async function benchReplay({ url, redis }: OwnRedis): Promise<Figure[]> {
  const figures: Figure[] = [];
  for (const size of SIZES) {
    const rounds: Replay[][] = [];
    for (let round = 0; round <= ROUNDS; round++) {
      const replays = await replaysOf(url, redis, size);
      // The first round warms up.
      if (round > 0) rounds.push(replays);
    }
    const figure = (
      metric: string,
      share: number,
      read: (replay: Replay) => number,
      goal: { readonly goal?: number; readonly goalIs?: "most" } = {},
    ) =>
      figureOf({
        suite: "workflow",
        case: `execution with ${size} recorded steps`,
        metric: `${metric}, p${share * 100}`,
        unit: "ms",
        ours: rounds.map((replays) => percentile(replays.map(read), share)),
        ...goal,
      });
    const whole = ({ claimMs, replayMs }: Replay) => claimMs + replayMs;
    figures.push(
      figure("claim to the first new step", 0.5, whole, { goal: MOST_MS, goalIs: "most" }),
      figure("claim to the first new step", 0.99, whole),
      figure("claim alone, read and parsed", 0.5, ({ claimMs }) => claimMs),
      figure("replay alone", 0.5, ({ replayMs }) => replayMs),
    );
  }
  return figures;
}

async function replaysOf(url: string, redis: OwnRedis["redis"], size: number): Promise<Replay[]> {
  let replayedMs = 0;
  const workflow: Workflow<undefined, void> = defineWorkflow(
    "long-run",
    { version: 1 },
    async (w) => {
      for (let n = 0; n < size; n++) {
        await w.step(`step-${n}`, async () => ({ name: `object-${n}`, revision: String(n) }));
      }
      await w.signal("go");
      await w.step("next", async () => {
        replayedMs = performance.now();
      });
    },
  );
  const { prefix, workflows, parked } = openRuns(url, redis, workflow);
  const worker = workflows.work({ workflows: [workflow] });
  const { id } = await workflows.start(workflow, undefined);
  await parked(id);
  await worker.stop();
  const ref = { workflow: workflow.name, id };
  await workflows.signal(ref, "go");
  const store = createRedisRunStore({
    call: (run) => run(redis),
    prefix,
    cluster: "default",
    retentionMs: 60_000,
  });
  const replays: Replay[] = [];
  for (let n = 0; n < REPLAYS; n++) {
    const startedMs = performance.now();
    const held = await store.claim(ref, { lease: n, owner: `bench-${n}`, anew: true });
    const claimedMs = performance.now();
    if (held.kind !== "held") throw new Error(`the run cannot be claimed: ${held.kind}`);
    const end = await runExecution({
      // The step's result is not recorded, so that the next replay is the same.
      store: { ...store, commit: async (_, __, record) => record, leave: async () => ({}) },
      workflow,
      held,
      stopped: new AbortController().signal,
      startChild: noChildren,
      clock: () => performance.now(),
      random: Math.random,
    });
    if (end.kind !== "ended") throw new Error(`the replay ended as ${end.kind}`);
    replays.push({ claimMs: claimedMs - startedMs, replayMs: replayedMs - claimedMs });
  }
  await workflows.close();
  return replays;
}
