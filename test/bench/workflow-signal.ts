import { defineWorkflow, type Workflow } from "@konverge/workflow";
import { figureOf, percentile, type Figure } from "./measure.ts";
import type { OwnRedis } from "./own-redis.ts";
import { latencies } from "./queue-latency.ts";
import { openBare } from "./queue-sides.ts";
import { openRuns } from "./workflow-sides.ts";

const SIGNALS = 300;
const ROUNDS = 3;

/** From the call that sends a signal to the first line of the step behind it, one at a time; next to the start of a bare job. */
export async function benchWakeUp(own: OwnRedis): Promise<Figure[]> {
  const ours: number[][] = [];
  const bare: number[][] = [];
  for (let round = 0; round <= ROUNDS; round++) {
    const mine = await signalLatencies(own);
    const theirs = await latencies(openBare(own.url));
    if (round === 0) continue;
    ours.push(mine);
    bare.push(theirs);
  }
  return [0.5, 0.99].map((share) => {
    const read = (values: readonly number[]) => 1_000 * percentile(values, share);
    return figureOf({
      suite: "workflow",
      case: "one signal at a time to a parked run",
      metric: `signal to the next step's body, p${share * 100}`,
      unit: "us",
      ours: ours.map(read),
      peer: { name: "bare BullMQ, add to handler", values: bare.map(read) },
    });
  });
}

async function signalLatencies({ url, redis }: OwnRedis): Promise<number[]> {
  const values: number[] = [];
  let sentMs = 0;
  const workflow: Workflow<undefined, void> = defineWorkflow("waits", { version: 1 }, async (w) => {
    await w.signal("go");
    await w.step("gone", async () => void values.push(performance.now() - sentMs));
  });
  const { workflows, ended, parked } = openRuns(url, redis, workflow);
  const worker = workflows.work({ workflows: [workflow] });
  for (let n = 0; n < SIGNALS; n++) {
    const { id } = await workflows.start(workflow, undefined);
    await parked(id);
    sentMs = performance.now();
    await workflows.signal({ workflow: workflow.name, id }, "go");
    await ended(n + 1);
  }
  await worker.stop();
  await workflows.close();
  // The first waits for the worker's connections.
  return values.slice(1);
}
