export { startWorker } from "./start-worker.ts";
export type { RunningWorker, WorkerOptions } from "./start-worker.ts";
