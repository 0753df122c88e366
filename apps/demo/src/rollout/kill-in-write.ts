import { KonvergeError } from "@konverge/core";
import type { LocalProcess } from "@konverge/local-stack";
import { pollUntil } from "../stage/poll-until.ts";
import { readWorkerGauge } from "../stage/worker-metrics.ts";

export interface DemoWorker {
  /** `worker 1`. */
  readonly name: string;
  readonly process: LocalProcess;
  readonly metricsUrl: string;
}

/** The answer is withheld for longer than this; other calls in flight end before the next check. */
const LOOKS = 3;

/**
 * Waits until `isWritten` reports a completed write whose answer the API server withholds, finds the worker that waits for
 * the answer, and kills it with SIGKILL: the worker cannot record the write.
 */
export async function killInWrite(
  workers: readonly DemoWorker[],
  {
    cluster,
    isWritten,
    signal,
  }: {
    readonly cluster: string;
    readonly isWritten: () => Promise<boolean>;
    readonly signal: AbortSignal;
  },
): Promise<DemoWorker> {
  await pollUntil(`${cluster} is written to`, isWritten, { signal, everyMs: 20 });
  let suspect: DemoWorker | undefined;
  let looks = 0;
  await pollUntil(
    "one worker waits for its answer",
    async () => {
      const waiting = await Promise.all(
        workers.map(async ({ metricsUrl }) => {
          const calls = await readWorkerGauge(metricsUrl, "konverge_guard_calls_in_flight", {
            cluster,
          });
          return calls > 0;
        }),
      );
      const found = workers.filter((_, index) => waiting[index]);
      const [first] = found.length === 1 ? found : [];
      looks = first !== undefined && first === suspect ? looks + 1 : 1;
      suspect = first;
      return suspect !== undefined && looks >= LOOKS;
    },
    { signal, everyMs: 50 },
  );
  if (suspect === undefined) throw new KonvergeError("demo_failed", "no worker waits");
  process.kill(suspect.process.pid, "SIGKILL");
  await suspect.process.ended;
  return suspect;
}
