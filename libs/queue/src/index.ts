export { bindCluster } from "./cluster-binding.ts";
export type { ClusterBinding } from "./cluster-binding.ts";
export { createControllerRegistry } from "./controller-registry.ts";
export type {
  AnnouncedController,
  AnnouncedDefinition,
  AnnouncedWorker,
  AnnouncedWorkflow,
  ControllerRegistry,
  ControllerRegistryOptions,
  StopHeartbeat,
} from "./controller-registry.ts";
export type { AttemptRow } from "./history/attempt-row.ts";
export { createHistoryReader } from "./history/history-reader.ts";
export type {
  AttemptPage,
  AttemptQuery,
  Contender,
  Fights,
  HistoryReader,
  HistoryReaderOptions,
  Rollup,
} from "./history/history-reader.ts";
export { createHistoryWriter, fightObject } from "./history/history-writer.ts";
export type {
  FightNote,
  FightPair,
  HistoryAnswer,
  HistoryBatch,
  HistoryWriter,
  HistoryWriterOptions,
  RollupNote,
} from "./history/history-writer.ts";
export { createWorkQueue } from "./create-work-queue.ts";
export { joinWorkers } from "./join-workers.ts";
export type { WorkQueueOptions } from "./create-work-queue.ts";
export { findFairnessIssues } from "./fairness.ts";
export type { Fairness } from "./fairness.ts";
export { AttemptCancelledError } from "./lease-keeper.ts";
export { createObjectLanes } from "./object-lanes.ts";
export type { LaneTurn, ObjectLanes, ObjectLanesOptions } from "./object-lanes.ts";
export type { PauseScope } from "./pause-scope.ts";
export type {
  CancelResult,
  DeadSelection,
  GivenOrder,
  KeyFilter,
  KeyPage,
  KeyQuery,
  KeySummary,
  Order,
  Pause,
  QueueControl,
} from "./queue-control.ts";
export { formatRequestId } from "./request-id.ts";
export { openRawQueue } from "./raw-queue.ts";
export type { RawQueue, RawQueueOptions } from "./raw-queue.ts";
export { findShardsIssue } from "./shard-of.ts";
export type { RedisTarget } from "@konverge/redis";
export { checkRedis, inspectRedis } from "./redis-facts.ts";
export type { RedisFacts, RedisFinding } from "./redis-facts.ts";
export type {
  AcceptedRequest,
  AttemptClosed,
  AttemptEnd,
  AttemptLease,
  KeyState,
  LostAttempt,
  QueueLadders,
  QueueWorker,
  RequestClass,
  RequestItem,
  RequestObserver,
  RequestOptions,
  RequestResult,
  RequestState,
  StoredAttempt,
  WorkOptions,
  WorkQueue,
} from "./work-queue.ts";
