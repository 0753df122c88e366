export { startWorker } from "./start-worker.ts";
export type { RunningWorker, WorkerOptions } from "./start-worker.ts";
export { startWorkerProcess } from "./start-worker-process.ts";
export type { WorkerProcess, WorkerProcessOptions } from "./start-worker-process.ts";
