export { createDirectKube } from "./access/create-direct-kube.ts";
export type { AttemptKube } from "./define/attempt-kube.ts";
export type {
  RunRequest,
  RunStarter,
  RunState,
  StartedWorkflow,
  StartRun,
  StartRunOptions,
} from "./define/start-run.ts";
export {
  allOf,
  annotationsChanged,
  anyOf,
  contentChanged,
  generationChanged,
  labelsChanged,
  not,
  resourceVersionChanged,
  statusChanged,
} from "./define/predicate.ts";
export type { Predicate, ObjectChange } from "./define/predicate.ts";
export { child } from "./define/children.ts";
export type {
  Child,
  ChildrenReport,
  ChildState,
  ReconcileChildrenOptions,
} from "./define/children.ts";
export type { ApprovalPlan, ApprovalRule } from "./define/approval-rule.ts";
export type { ServiceLevel } from "./define/service-level.ts";
export type { Backoff } from "./define/backoff.ts";
export { ACCESS_VERBS } from "./define/permission.ts";
export type { AccessVerb, Permission } from "./define/permission.ts";
export { leaseName } from "./watch/lease-name.ts";
export { defineController } from "./define/define-controller.ts";
export type { Controller } from "./define/define-controller.ts";
export type {
  ClusterSelection,
  ConflictRetry,
  ControllerOptions,
} from "./define/controller-options.ts";
export type { Source, WatchSource } from "./define/source.ts";
export type {
  CallExternal,
  ReconcileContext,
  ReconcileResult,
  UseLimit,
} from "./define/reconcile-context.ts";
export { poll } from "./define/poll.ts";
export type { PollOptions } from "./define/poll.ts";
export { stream } from "./define/stream.ts";
export type { StreamOptions } from "./define/stream.ts";
export { inbound } from "./define/inbound.ts";
export type { InboundOptions } from "./define/inbound.ts";
export { bearerToken, githubSignature, hmacSignature } from "./define/verification.ts";
export type { HmacOptions, SenderVerification } from "./define/verification.ts";
export type {
  Delivery,
  EventSource,
  InboundSource,
  PollContext,
  PollResult,
  PollSource,
  RequestedObjects,
  StreamEvent,
  StreamSource,
} from "./define/event-source.ts";
export type { OtherVersion } from "./define/crd-manifest.ts";
export type { PrinterColumn } from "./define/printer-column.ts";
export { conditions, defineResource } from "./define/define-resource.ts";
export type { CustomObject, Resource, ResourceDefinition } from "./define/define-resource.ts";
export { immutable, rule } from "./define/rule.ts";
export type { RuleOptions } from "./define/rule.ts";
export { checkKeywords } from "./define/schema-keywords.ts";
export type { SchemaCondition, SchemaKeywords } from "./define/schema-keywords.ts";
export type { Duration } from "@konverge/core";
export { createShutdown } from "./create-shutdown.ts";
export type { Shutdown } from "./create-shutdown.ts";
export { findCrdDrift } from "./define/crd-drift.ts";
export { findServedIssue } from "./watch/check-served.ts";
export { findNamespacesIssue, isByLabels, namesIn } from "./define/namespace-selection.ts";
export type { NamespaceSelection } from "./define/namespace-selection.ts";
export { findScopeIssues } from "./watch/scope-of.ts";
export { startEngine } from "./engine.ts";
export type { Engine } from "./engine.ts";
export { startPlanner } from "./start-planner.ts";
export type { Planner, PlannerOptions } from "./start-planner.ts";
export { replayAttempt } from "./replay/replay-attempt.ts";
export type {
  AttemptReplay,
  ReplayedOutcome,
  ReplayedWrite,
  ReplayParts,
} from "./replay/replay-attempt.ts";
export type { EffectDifference } from "./replay/compare-effects.ts";
export type { ReplayGap } from "./replay/replay-tape.ts";
export type { PlanRequest } from "./plan/run-plan.ts";
export type { DescribedObject } from "./access/describe-object.ts";
export type { ReachableClusters, ReachedCluster } from "./access/attempt.ts";
export { selectsCluster } from "./define/selects-cluster.ts";
export type { EngineOptions } from "./engine-options.ts";
export type { LoopWatch } from "./attempt/loop-watch.ts";
export { NO_LANES } from "./access/attempt-plan.ts";
export type { Log } from "./define/log.ts";
export type { Handler, Middleware } from "./define/middleware.ts";
export { reportProgress } from "./define/report-progress.ts";
export type { Progress, ProgressDraft } from "./define/report-progress.ts";
export { reportStrayErrors } from "./attempt/stray-errors.ts";
export type { StrayErrorOptions } from "./attempt/stray-errors.ts";
