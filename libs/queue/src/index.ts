export { bindCluster, findBindingIssue } from "./fleet/cluster-binding.ts";
export type { ClusterBinding } from "./fleet/cluster-binding.ts";
export { createClusterRegistry, listServedClusters } from "./fleet/cluster-registry.ts";
export type { ClusterRegistry, IdentityClaim } from "./fleet/cluster-registry.ts";
export { askForObject, serveObjectReads } from "./fleet/object-reads.ts";
export type { ObjectRead } from "./fleet/object-reads.ts";
export { createRecordingStore } from "./plans/recording-store.ts";
export type { RecordingStore } from "./plans/recording-store.ts";
export { readPlan, readPlansOf, requestPlan } from "./plans/plan-store.ts";
export type { PlanState, WantedPlan } from "./plans/plan-store.ts";
export { createDriftStore } from "./drift/drift-store.ts";
export type { Drift, DriftChange, DriftStore } from "./drift/drift-store.ts";
export { createApprovalStore } from "./approvals/approval-store.ts";
export type { ApprovalStore, Requesters } from "./approvals/approval-store.ts";
export {
  applying,
  APPROVAL_STATES,
  approved,
  APPROVER_ROLES,
  demandNewest,
  proposed,
  rejected,
  requestedBy,
} from "./approvals/approval.ts";
export type { Approval, ApproverRole } from "./approvals/approval.ts";
export { createControllerRegistry } from "./fleet/controller-registry.ts";
export type {
  AnnouncedCache,
  AnnouncedCalls,
  AnnouncedController,
  AnnouncedDefinition,
  AnnouncedInbound,
  AnnouncedLoad,
  AnnouncedSource,
  AnnouncedWorker,
  AnnouncedWorkflow,
  ReportedCluster,
  Verification,
  WorkerClusters,
} from "./fleet/announced.ts";
export { openSourceStore } from "./sources/source-store.ts";
export type {
  NewDelivery,
  SourceAdvance,
  SourceStore,
  SourceStoreOptions,
  StoredDelivery,
} from "./sources/source-store.ts";
export { openNotificationStore } from "./notifications/notification-store.ts";
export type {
  NotificationStore,
  NotificationStoreOptions,
  ToldChanges,
} from "./notifications/notification-store.ts";
export type {
  FaultGroup,
  NotificationRecord,
  NotificationTry,
} from "./notifications/notification-record.ts";
export { faultId } from "./notifications/fault-id.ts";
export type { SourcePlace } from "./sources/source-names.ts";
export type { SourceReport } from "./sources/source-report.ts";
export type { SourceClaim } from "./sources/scripts/claim-source.ts";
export type { AcceptedDelivery } from "./sources/scripts/accept-delivery.ts";
export type { TakenDeliveries } from "./sources/scripts/take-deliveries.ts";
export type {
  ControllerRegistry,
  ControllerRegistryOptions,
  StopHeartbeat,
} from "./fleet/controller-registry.ts";
export type { AttemptRow } from "./history/attempt-row.ts";
export { createHistoryReader } from "./history/history-reader.ts";
export type { AttemptPage, AttemptQuery } from "./history/attempt-search.ts";
export type { ScanOptions } from "./contract/scan-options.ts";
export type {
  ContentionEntry,
  ContentionReport,
  WastedWrites,
  HistoryReader,
  HistoryReaderOptions,
  Rollup,
} from "./history/history-reader.ts";
export type {
  ContentionNote,
  ContentionPair,
  HistoryAnswer,
  HistoryBatch,
  RollupNote,
  WasteNote,
} from "./history/history-batch.ts";
export { createGaugeStore } from "./history/gauge-store.ts";
export type { GaugeMinute, GaugeSample, GaugeStore, ServedQueue } from "./history/gauge-store.ts";
export { EPISODE_PAUSE_MS } from "./history/history-names.ts";
export { contentionObject } from "./history/contention-object.ts";
export { durationCounter, durationQuantile } from "./history/duration-histogram.ts";
export { createHistoryWriter } from "./history/history-writer.ts";
export type { HistoryWriter, HistoryWriterOptions } from "./history/history-writer.ts";
export { createWorkQueue } from "./create-work-queue.ts";
export { QueueProcess } from "./attempt/queue-process.ts";
export { joinWorkers } from "./attempt/join-workers.ts";
export type { WorkQueueOptions } from "./create-work-queue.ts";
export { findFairnessIssues } from "./contract/fairness.ts";
export type { Fairness } from "./contract/fairness.ts";
export { ProcessQuarantine } from "./attempt/process-quarantine.ts";
export type { Quarantine } from "./contract/quarantine.ts";
export { AttemptCancelledError } from "./attempt/lease-keeper.ts";
export type { PauseScope } from "./contract/pause.ts";
export type {
  CancelResult,
  DeadLetterSelector,
  OperatorActionRecord,
  KeyFilter,
  KeyPage,
  KeyQuery,
  KeySummary,
  QueueControl,
} from "./contract/queue-control.ts";
export type { OperatorAction, Pause } from "./contract/pause.ts";
export { formatRequestId } from "./keys/request-id.ts";
export { openRestoreWatch } from "./restore/restore-watch.ts";
export type { RecordedProgress, RestoreFence, RestoreWatch } from "./restore/restore-watch.ts";
export { createTokensFence } from "./restore/tokens-fence.ts";
export { createRestoreControl } from "./restore/restore-control.ts";
export type { RestoreControl } from "./restore/restore-control.ts";
export { heldQueues } from "./restore/restore-state.ts";
export type { RestoreState } from "./restore/restore-state.ts";
export { readServerState } from "./fleet/read-server-state.ts";
export type { ServerState } from "./scripts/server-state.ts";
export { openRawQueue } from "./fleet/raw-queue.ts";
export type { RawQueue, RawQueueOptions } from "./fleet/raw-queue.ts";
export { findShardsIssue } from "./keys/shard-of.ts";
export type { RedisTarget } from "@konverge/redis";
export type {
  AcceptedRequest,
  AttemptClosed,
  AttemptEnd,
  AttemptLease,
  LostAttempt,
  QueueBackoffs,
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
} from "./contract/work-queue.ts";
export type { KeyState } from "./contract/key-state.ts";
