import { openWorkflows } from "@konverge/workflow";
import { createRedisRunStore } from "../../libs/workflow/src/store/redis-run-store.ts";
import { figureOf, type Figure } from "./measure.ts";
import type { OwnRedis } from "./own-redis.ts";
import { startMany } from "./workflow-sides.ts";

const SIZE = 100_000;
const GOAL_S = 5;
const WORKFLOW = "parked";
/** Half of the runs have it. */
const LABEL = { team: "web" };

/** Measures bulk actions on runs that wait for a signal: the count before, the pause and the end of the pause. */
export async function benchPause(own: OwnRedis, log: (line: string) => void): Promise<Figure[]> {
  log(`workflow: pause of ${SIZE} runs`);
  await own.redis.flushall();
  const names = { prefix: "bench", cluster: "default" };
  const store = createRedisRunStore({
    ...names,
    retentionMs: 3_600_000,
    call: (run) => run(own.redis),
  });
  await startMany(SIZE, async (n) => {
    const ref = { workflow: WORKFLOW, id: `run-${n}` };
    await store.start({
      ...ref,
      version: 1,
      input: null,
      ...(n % 2 === 0 ? { labels: LABEL } : {}),
    });
    const held = await store.claim(ref, { lease: 1, owner: "bench" });
    if (held.kind !== "held") throw new Error(`run ${n} is ${held.kind}`);
    await store.leave(held, { kind: "waiting", waits: [{ step: "approve", kind: "signal" }] });
  });
  const workflows = openWorkflows({ redis: { url: own.url }, ...names });
  const what = { suite: "workflow", case: `${SIZE} parked runs`, unit: "s" } as const;
  const time = async (metric: string, size: number, work: () => Promise<number>, goal?: number) => {
    const startedMs = performance.now();
    const matched = await work();
    const ms = performance.now() - startedMs;
    if (matched !== size) throw new Error(`${metric}: ${matched} of ${size} runs`);
    const most = goal === undefined ? {} : ({ goal, goalIs: "most" } as const);
    return figureOf({ ...what, metric, ours: [ms / 1_000], ...most });
  };
  const act = (action: "pause" | "resume", labels?: Readonly<Record<string, string>>) => async () =>
    (await workflows.actOnMatching([WORKFLOW], { action, ...(labels && { filter: { labels } }) }))
      .matched;
  const count = async () =>
    (await workflows.countMatching([WORKFLOW], { action: "pause" })).matched;
  const figures = [
    await time("count of the runs to pause", SIZE, count),
    await time("pause of half of them, by label", SIZE / 2, act("pause", LABEL)),
    await time("end of that pause", SIZE / 2, act("resume", LABEL)),
    await time("pause of all", SIZE, act("pause"), GOAL_S),
  ];
  await workflows.close();
  return figures;
}
