import type { LocalStack } from "@konverge/local-stack";
import type { ActControllers } from "../load/act-controllers.ts";
import { readWorkerTotals } from "../stage/worker-metrics.ts";

export interface KonvergeWorkersOptions {
  readonly stack: LocalStack;
  readonly namespace: string;
  /** Configuration files, one per operator; every operator gets its own workers. */
  readonly configs: readonly string[];
  /** Worker processes per operator. */
  readonly workers: number;
  readonly env: Readonly<Record<string, string>>;
}

/** Starts workers as a user does, and waits until all are ready. */
export async function startKonvergeWorkers({
  stack,
  namespace,
  configs,
  workers,
  env,
}: KonvergeWorkersOptions): Promise<ActControllers> {
  const processes = configs.flatMap((config) =>
    Array.from({ length: workers }, () =>
      stack.start(["worker", "--config", config], {
        KONVERGE_METRICS_PORT: "0",
        KONVERGE_LEASE_NAMESPACE: namespace,
        // A killed worker must be replaced within the act.
        KONVERGE_LEASE_DURATION: "4s",
        ...env,
      }),
    ),
  );
  const stop = async () => {
    await Promise.all(processes.map((worker) => worker.stop()));
  };
  try {
    const metricsUrls = await Promise.all(
      processes.map(async (worker) => String((await worker.logged("worker ready"))["metricsUrl"])),
    );
    return {
      pids: processes.map(({ pid }) => pid),
      agent: "konverge-worker",
      metricsUrls,
      async totals() {
        const { reconciles, jobRetries, gaveUp, ...calls } = await readWorkerTotals(
          metricsUrls.filter((_, index) => processes[index]?.alive),
        );
        return {
          reconciles,
          jobRetries,
          gaveUp,
          calls: { calls: calls.apiCalls, writes: calls.writes, conflicts: calls.conflicts },
        };
      },
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}
