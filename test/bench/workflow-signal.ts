import { defineWorkflow, type Workflow } from "@konverge/workflow";
import type { Figure } from "./measure.ts";
import type { OwnRedis } from "./own-redis.ts";
import { latenciesNextToBare } from "./queue-latency.ts";
import { openRuns } from "./workflow-sides.ts";

const SIGNALS = 300;
const ROUNDS = 3;

/** Measures from the call that sends a signal to the first line of the next step, one at a time, next to the start of a bare job. */
export async function benchWakeUp(own: OwnRedis): Promise<Figure[]> {
  return await latenciesNextToBare(own.url, () => signalLatencies(own), {
    suite: "workflow",
    case: "one signal at a time to a parked run",
    metric: "signal to the next step's body",
    peerName: "bare BullMQ, add to handler",
    rounds: ROUNDS,
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
  // The first signal waits for the worker's connections.
  return values.slice(1);
}
