export { MemoryQueues } from "./memory-queues.ts";
export type { MemoryProcess, MemoryQueueEvent, MemoryQueueOptions } from "./memory-queues.ts";
export type { MemoryKey } from "./memory-key.ts";
