import type { BenchOptions, Figure } from "./measure.ts";
import { startOwnRedis } from "./own-redis.ts";
import { benchParkedRuns } from "./workflow-parked.ts";
import { benchPause } from "./workflow-pause.ts";
import { benchReplay } from "./workflow-replay.ts";
import { benchWakeUp } from "./workflow-signal.ts";
import { benchSteps } from "./workflow-steps.ts";
import { benchTails } from "./workflow-tails.ts";

/** Measures durable workflows: the cost of steps next to a BullMQ flow, the latency of signals, the memory of waiting runs, replay, and the slowest runs. */
export async function benchWorkflow({ log, long }: BenchOptions): Promise<Figure[]> {
  await using own = await startOwnRedis(log);
  return [
    ...(await benchSteps(own, log)),
    ...(await benchWakeUp(own)),
    ...(await benchReplay(own)),
    ...(await benchParkedRuns(own, { long, log })),
    ...(await benchPause(own, log)),
    ...(await benchTails(own, log)),
  ];
}
