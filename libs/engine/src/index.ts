export type { AttemptKube, StatusDraft } from "./attempt-kube.ts";
export type { RunStarter, RunState, StartRun, StartRunOptions } from "./start-run.ts";
export {
  allOf,
  annotationsChanged,
  anyOf,
  generationChanged,
  labelsChanged,
  not,
  resourceVersionChanged,
} from "./change-predicate.ts";
export type { ChangePredicate, ObjectChange } from "./change-predicate.ts";
export type { Backoff } from "./backoff.ts";
export { CLASSIC_RATE, clusterLimits } from "./cluster-options.ts";
export type { ClusterOptions } from "./cluster-options.ts";
export { leaseName, requiredAccess, WAITS_LEASE } from "./controller-access.ts";
export type { AccessRule, AccessVerb, Permission, RequiredAccess } from "./controller-access.ts";
export { defineConfig } from "./define-config.ts";
export type { Config } from "./define-config.ts";
export { defineController } from "./define-controller.ts";
export type {
  ConflictRetry,
  Controller,
  ControllerOptions,
  ReconcileContext,
  ReconcileResult,
  WatchSource,
} from "./define-controller.ts";
export type { OtherVersion } from "./crd-manifest.ts";
export type { PrinterColumn } from "./printer-column.ts";
export { conditions, defineResource } from "./define-resource.ts";
export type { CustomObject, Resource, ResourceDefinition } from "./define-resource.ts";
export type { Duration } from "@konverge/core";
export { createRelease } from "./create-release.ts";
export type { Release } from "./create-release.ts";
export { startEngine } from "./engine.ts";
export type { Engine, EngineOptions } from "./engine.ts";
export type { Log } from "./log.ts";
export { findMissingAccess } from "./find-missing-access.ts";
export type { Handler, Middleware } from "./middleware.ts";
export type { NewObject } from "./new-object.ts";
export type { NamedTarget } from "./object-target.ts";
export { reportProgress } from "./report-progress.ts";
export type { Progress, ProgressDraft } from "./report-progress.ts";
export { reportStrayErrors } from "./stray-errors.ts";
export type { StrayErrorOptions } from "./stray-errors.ts";
export type { WorkerRole } from "./worker-role.ts";
