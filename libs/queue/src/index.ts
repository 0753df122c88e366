export { createWorkQueue } from "./create-work-queue.ts";
export type { WorkQueueOptions } from "./create-work-queue.ts";
export { AttemptCancelledError } from "./lease-keeper.ts";
export type { RedisTarget } from "./redis-client.ts";
export type {
  AcceptedRequest,
  AttemptClosed,
  AttemptEnd,
  AttemptLease,
  KeyState,
  QueueLadders,
  QueueWorker,
  RequestClass,
  RequestOptions,
  RequestState,
  StoredAttempt,
  WorkOptions,
  WorkQueue,
} from "./work-queue.ts";
