export type {
  AttemptQuery,
  Backfill,
  Client,
  ClusterQuery,
  Controller,
  KeyQuery,
  MutationQuery,
  NewReconcile,
  NewRun,
  Cluster,
  ControllerObject,
  HistoriesQuery,
  OperatorAction,
  Pause,
  ReadOptions,
  Release,
  Run,
  BulkRunAction,
  RunQuery,
  RunRetry,
  ScheduleName,
  PlanOptions,
  WaitOptions,
  Worker,
  WriteOptions,
} from "./client.ts";
export type { CodecContext, PayloadCodec } from "@konverge/core";
export type { ClientOptions } from "./api-calls.ts";
export { createClient } from "./create-client.ts";
export type { ClientEvent } from "./event-stream.ts";
export type { Pages } from "./pages.ts";
export { ProblemError } from "./problem-error.ts";
export type { ProblemIssue } from "./problem-error.ts";
export type { RetryOptions } from "./send-request.ts";
