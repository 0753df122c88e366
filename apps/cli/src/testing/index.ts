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
export { startTestCluster } from "./start-test-cluster.ts";
export type { TestCluster, TestClusterOptions } from "./start-test-cluster.ts";
export type { TestServer } from "./test-server.ts";
