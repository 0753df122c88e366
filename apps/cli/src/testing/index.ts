export type { Fault, FaultEffect } from "@konverge/apiserver";
export type { ApiCall, CallFilter } from "./api-calls.ts";
export type { Attempt } from "./attempts.ts";
export type { LogLine } from "./kept-log.ts";
export { replay, testWorkflow } from "@konverge/workflow/testing";
export type {
  TestChild,
  TestRun,
  TestSchedule,
  TestWorkflowOptions,
} from "@konverge/workflow/testing";
export { replayAttempt } from "./replay-attempt.ts";
export type { ReplayConfig } from "./replay-attempt.ts";
export type {
  AttemptReplay,
  EffectDifference,
  ReplayedOutcome,
  ReplayedWrite,
  ReplayGap,
} from "@konverge/engine";
export type { FieldDifference } from "@konverge/kube";
export type { AttemptRecording } from "@konverge/records";
export { startTestCluster } from "./start-test-cluster.ts";
export type { TestCluster, TestClusterOptions } from "./start-test-cluster.ts";
export type { TestServer } from "./test-server.ts";
export { simulate } from "./simulate/simulate.ts";
export type { SimulateOptions, SimulationFailure, SimulationReport } from "./simulate/simulate.ts";
export type { FailedAnswer, FaultKind, SimulatedFault } from "./simulate/fault.ts";
export type {
  Invariant,
  Scenario,
  SimulatedConfig,
  SimulatedObjects,
  SimulatedReaction,
  SimulatedUser,
  Simulation,
} from "./simulate/scenario.ts";
export type { Violation } from "./simulate/simulated-run.ts";
export type { SimulatedRunState } from "./simulate/run-state.ts";
