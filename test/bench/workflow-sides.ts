import { randomUUID } from "node:crypto";
import { defineWorkflow, openWorkflows, type AnyWorkflow, type Workflow } from "@konverge/workflow";
import { FlowProducer, Worker, type FlowJob } from "bullmq";
import type { Redis } from "ioredis";
import { runNames } from "../../libs/workflow/src/store/run-names.ts";

export const STEPS = 5;
const STARTED_AT_ONCE = 200;
const LOOK_EVERY_MS = 5;

/** Five empty steps in sequence under measurement: a run of a workflow, or a chain of five jobs. */
export interface StepsSide {
  readonly name: string;
  /** Resolves when it is stored in Redis. */
  start(): Promise<void>;
  /** Resolves when `count` of the started ones have ended. */
  work(count: number, concurrency: number): Promise<void>;
  close(): Promise<void>;
}

/** Creates runs of one workflow under a separate prefix. */
export function openRuns(url: string, redis: Redis, workflow: AnyWorkflow) {
  const prefix = `bench-${randomUUID()}`;
  const errors: Error[] = [];
  const workflows = openWorkflows({
    redis: { url },
    prefix,
    onError: (error) => errors.push(error),
  });
  const names = runNames(prefix, "default", workflow.name);
  const until = async (holds: () => Promise<boolean>) => {
    while (!(await holds())) {
      if (errors[0] !== undefined) throw errors[0];
      await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS));
    }
  };
  return {
    prefix,
    workflows,
    /** Resolves when `count` runs have ended since the start. */
    ended: (count: number) => until(async () => (await redis.zcard(names.ended)) >= count),
    parked: (id: string) =>
      until(async () => (await redis.hget(names.run(id), "status")) === "waiting"),
  };
}

const fiveSteps: Workflow<undefined, number> = defineWorkflow(
  "five-steps",
  { version: 1 },
  async (w) => {
    let sum = 0;
    for (let n = 0; n < STEPS; n++) sum += await w.step(`step-${n}`, async () => n);
    return sum;
  },
);

export function openFiveSteps(url: string, redis: Redis): StepsSide {
  const runs = openRuns(url, redis, fiveSteps);
  return {
    name: "ours",
    async start() {
      await runs.workflows.start(fiveSteps, undefined);
    },
    async work(count, concurrency) {
      const worker = runs.workflows.work({ workflows: [fiveSteps], concurrency });
      await runs.ended(count);
      await worker.stop();
    },
    close: () => runs.workflows.close(),
  };
}

export function openFlow(url: string): StepsSide {
  const queueName = `flow-${randomUUID()}`;
  const flows = new FlowProducer({ connection: { url } });
  return {
    name: `BullMQ flow of ${STEPS} jobs`,
    async start() {
      let flow: FlowJob | undefined;
      for (let n = 0; n < STEPS; n++) {
        flow = {
          name: `step-${n}`,
          queueName,
          data: { n },
          opts: { removeOnComplete: true },
          ...(flow === undefined ? {} : { children: [flow] }),
        };
      }
      if (flow !== undefined) await flows.add(flow);
    },
    async work(count, concurrency) {
      const done = Promise.withResolvers<void>();
      let ended = 0;
      const worker = new Worker<{ n: number }, number>(queueName, async ({ data }) => data.n, {
        connection: { url, maxRetriesPerRequest: null },
        concurrency,
      });
      worker.on("error", done.reject);
      worker.on("completed", ({ data }) => {
        if (data.n === STEPS - 1) ended += 1;
        if (ended === count) done.resolve();
      });
      await done.promise;
      await worker.close();
    },
    close: () => flows.close(),
  };
}

export async function startMany(
  count: number,
  start: (n: number) => Promise<unknown>,
): Promise<void> {
  let next = 0;
  await Promise.all(
    Array.from({ length: STARTED_AT_ONCE }, async () => {
      while (next < count) await start(next++);
    }),
  );
}
