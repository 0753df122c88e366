import { readSettings } from "@konverge/contracts";
import { createControllerRegistry } from "@konverge/queue";
import { defineWorkflow, type Workflow } from "@konverge/workflow";
import { openClient } from "../../apps/cli/src/ask/open-client.ts";
import { checkLiveRuns } from "../../apps/cli/src/config/check-live-runs.ts";
import { figureOf, type Figure } from "./measure.ts";
import type { OwnRedis } from "./own-redis.ts";
import { openRuns, startMany } from "./workflow-sides.ts";

const SIZES = [10_000];
const LONG_SIZES = [...SIZES, 100_000];

/** Measures runs that have done one step and wait for a signal: their Redis memory, and the time from the signals until all have ended. */
export async function benchParkedRuns(
  own: OwnRedis,
  { long, log }: { readonly long: boolean; readonly log: (line: string) => void },
): Promise<Figure[]> {
  const figures: Figure[] = [];
  for (const size of long ? LONG_SIZES : SIZES) {
    log(`workflow: ${size} parked runs`);
    await own.redis.flushall();
    const emptyBytes = await own.usedMemory();
    const { workflows, prefix, ended, parked } = openRuns(own.url, own.redis, approval);
    const startedMs = performance.now();
    const worker = workflows.work({ workflows: [approval] });
    await startMany(size, (n) => workflows.start(approval, undefined, { id: `run-${n}` }));
    for (let n = 0; n < size; n++) await parked(`run-${n}`);
    const parkedMs = performance.now();
    const parkedBytes = (await own.usedMemory()) - emptyBytes;
    const checkedMs = await timeCheck({ redisUrl: own.url, prefix, size });
    const wokenMs = performance.now();
    await startMany(size, (n) =>
      workflows.signal({ workflow: approval.name, id: `run-${n}` }, "approve"),
    );
    const signalledMs = performance.now();
    await ended(size);
    const endedMs = performance.now();
    const endedBytes = (await own.usedMemory()) - emptyBytes;
    await worker.stop();
    await workflows.close();
    const figure = (metric: string, unit: string, value: number) =>
      figureOf({ suite: "workflow", case: `${size} parked runs`, metric, unit, ours: [value] });
    figures.push(
      figure("memory per parked run", "bytes", parkedBytes / size),
      figure("memory per ended run, while kept", "bytes", endedBytes / size),
      figure("from the first start to all parked", "s", (parkedMs - startedMs) / 1_000),
      figure("deploy check of all", "s", checkedMs / 1_000),
      figure("from the first signal to all ended", "s", (endedMs - wokenMs) / 1_000),
      figure("from the last signal to all ended", "s", (endedMs - signalledMs) / 1_000),
      figure("resumed and ended", "1/s", (size * 1_000) / (endedMs - wokenMs)),
    );
  }
  return figures;
}

/** The time to replay all live runs with the same code, as `konverge deploy check` does, in ms. */
async function timeCheck({
  redisUrl,
  prefix,
  size,
}: {
  readonly redisUrl: string;
  readonly prefix: string;
  readonly size: number;
}): Promise<number> {
  const settings = readSettings({ env: { KONVERGE_REDIS_URL: redisUrl, KONVERGE_PREFIX: prefix } });
  const opened = await openClient(settings);
  // As a worker does, so that the API has the workflow.
  const registry = createControllerRegistry({
    redis: { url: redisUrl },
    prefix,
    cluster: "default",
  });
  await registry.announce([], [approval]);
  const startedMs = performance.now();
  const { fit } = await checkLiveRuns(opened.client, "default", { workflows: [approval] });
  const ms = performance.now() - startedMs;
  await Promise.all([opened.close(), registry.close()]);
  if (fit !== size) throw new Error(`${fit} of ${size} parked runs fit`);
  return ms;
}

const approval: Workflow<undefined, number> = defineWorkflow(
  "approval",
  { version: 1 },
  async (w) => {
    const before = await w.step("prepare", async () => 1);
    await w.signal("approve");
    return before + (await w.step("continue", async () => 1));
  },
);
