import type { QueueWorker } from "../contract/work-queue.ts";

/** Combines several workers. `onEnd` runs once, after the first stop or kill. */
export function joinWorkers(
  workers: readonly QueueWorker[],
  onEnd: () => Promise<void> = async () => undefined,
): QueueWorker {
  let ending: Promise<void> | undefined;
  const end = () => (ending ??= onEnd());
  return {
    get active() {
      return workers.reduce((sum, { active }) => sum + active, 0);
    },
    get finished() {
      return workers.reduce((sum, { finished }) => sum + finished, 0);
    },
    pause() {
      for (const worker of workers) worker.pause();
    },
    resume() {
      for (const worker of workers) worker.resume();
    },
    async stop(options) {
      await Promise.all(workers.map((worker) => worker.stop(options)));
      await end();
    },
    async kill() {
      await Promise.all(workers.map((worker) => worker.kill()));
      await end();
    },
  };
}
