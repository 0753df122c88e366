import type { GuardControl } from "@konverge/guard";
import type { AnnouncedWorker, GaugeSample } from "@konverge/queue";
import { queueOfWorkflow } from "@konverge/workflow";
import type { QueueAccess } from "../queues/queue-access.ts";
import { HIGH_MEMORY, memoryShareOf } from "./find-redis-problems.ts";

const EVERY_MS = 15_000;
/** Ends before the next turn, also if timers drift. */
const CLAIM_MS = 14_000;

export interface SamplingOptions {
  readonly access: QueueAccess;
  readonly guards: GuardControl;
  readonly onError: (error: unknown) => void;
}

/**
 * Stores the queue lengths, calls and breaker of all clusters every 15 s, for the charts of the dashboard. One API process
 * samples a cluster at a time. Returns the function that ends it.
 */
export function startSampling(options: SamplingOptions): () => Promise<void> {
  let running: Promise<void> | undefined;
  const turn = () => {
    running ??= sampleAll(options)
      .catch(options.onError)
      .finally(() => {
        running = undefined;
      });
  };
  turn();
  const timer = setInterval(turn, EVERY_MS);
  timer.unref();
  return async () => {
    clearInterval(timer);
    await running;
  };
}

/** One cluster after another, so that many clusters cost no peak. One that cannot be measured does not affect the others. */
async function sampleAll({ access, guards, onError }: SamplingOptions): Promise<void> {
  for (const cluster of await access.clusters()) {
    try {
      if (await access.gauges(cluster).claim(CLAIM_MS)) {
        await access.gauges(cluster).note(await takeSample({ access, guards }, cluster));
      }
    } catch (error) {
      onError(error);
    }
  }
}

/** Measures a cluster. */
export async function takeSample(
  { access, guards }: Omit<SamplingOptions, "onError">,
  cluster: string,
): Promise<GaugeSample> {
  const [known, workers, guard, server] = await Promise.all([
    access.controllers(cluster),
    access.workers(cluster),
    guards.read(cluster),
    access.readServer(),
  ]);
  const controllers = await Promise.all(
    known.map(async ({ name }) => {
      const { queue } = await access.find(cluster, name);
      const [{ waiting }, { headAgeMs: oldestMs }, pauses] = await Promise.all([
        queue.counts(),
        queue.backlog(),
        queue.control.listPauses(),
      ]);
      const isPaused = pauses.some(({ scope }) => scope.kind === "controller");
      return { name, waiting, oldestMs, isPaused, version: versionOf(workers, name) };
    }),
  );
  const loads = workers.flatMap(({ workerId, load }) =>
    load === undefined ? [] : [{ workerId, calls: load.calls }],
  );
  const waitingCalls = loads.flatMap(({ calls }) => Object.values(calls.waiting));
  return {
    controllers,
    ...(guard === undefined
      ? {}
      : {
          guard: {
            mode: guard.breaker.state,
            allowed: guard.rate.current,
            limit: guard.rate.override?.ratePerSecond ?? guard.rate.limits.ratePerSecond,
          },
        }),
    calls: Object.fromEntries(
      loads.map(({ workerId, calls: { admitted, deferred } }) => [
        workerId,
        { admitted, deferred },
      ]),
    ),
    waitingCalls: waitingCalls.reduce((sum, each) => sum + each, 0),
    served: versionsServed(workers),
    isMemoryHigh: memoryShareOf(server) > HIGH_MEMORY,
  };
}

/** The number of versions per controller and per workflow, by queue. */
function versionsServed(workers: readonly AnnouncedWorker[]): ReadonlyMap<string, number> {
  const found = workers.flatMap(({ controllers, definitions, workflows = {} }) => [
    ...controllers.map((name) => [name, definitions[name]?.digest ?? ""] as const),
    ...Object.entries(workflows).map(
      ([name, version]) => [queueOfWorkflow(name), `${version}`] as const,
    ),
  ]);
  const versions = Map.groupBy(found, ([name]) => name);
  return new Map(
    [...versions].map(([name, each]) => [name, new Set(each.map(([, version]) => version)).size]),
  );
}

/** The digests that live workers run, for example both during a rolling update. */
function versionOf(workers: readonly AnnouncedWorker[], controller: string): string {
  const digests = workers.flatMap(({ definitions }) => definitions[controller]?.digest ?? []);
  return [...new Set(digests.map((digest) => digest.slice(0, 7)))].toSorted().join(" and ");
}
