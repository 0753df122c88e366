import { RUN_STATUSES } from "@konverge/core";
import { z } from "zod";

/** What can be wrong with a cluster's work, worst first. */
export const OVERVIEW_PROBLEMS = [
  "no_workers",
  "breaker_open",
  "unserved",
  "breaker_half_open",
  "dead_letters",
  "run_blocked",
  "run_failed",
  "backlog",
  "failing",
  "lost",
  "loop",
  "contention",
  "version_skew",
  "paused",
] as const;

const sayCluster = "write a text of 1 to 253 characters";

/** Query of `GET /v1/overview`. */
export const overviewQuerySchema = z.strictObject({
  /** Default: the one that the API was started for. */
  cluster: z.string(sayCluster).min(1, sayCluster).max(253, sayCluster).optional(),
});

const problem = z.object({
  code: z.enum(OVERVIEW_PROBLEMS),
  /** `note` is worth knowing and no fault, such as a pause that a person ordered. */
  level: z.enum(["error", "warning", "info"]),
  /** One clause for people. */
  message: z.string(),
  controller: z.string().optional(),
  /** `controller/cluster/resource.group/namespace/name`. */
  key: z.string().optional(),
  workflow: z.string().optional(),
  /** Id of the workflow's run. */
  run: z.string().optional(),
});

const minute = z.object({
  /** Attempts of the minute by how they ended. */
  ok: z.number(),
  failed: z.number(),
  /** Lost a race for good; the key runs again at once. */
  conflict: z.number(),
});

const controllerRow = z.object({
  name: z.string(),
  kind: z.string(),
  group: z.string(),
  version: z.string(),
  resource: z.string(),
  scope: z.enum(["Namespaced", "Cluster"]),
  waiting: z.number(),
  active: z.number(),
  delayed: z.number(),
  /** How long the oldest waits, of the first and last 20 in the queue; absent when nothing waits. */
  oldestRequestAgeMs: z.number().optional(),
  /** Live workers that run it. */
  workers: z.number(),
  /** Of its attempts among the last 1,000 of the cluster; absent when there are none. */
  p50Ms: z.number().optional(),
  p99Ms: z.number().optional(),
  /** Dead letters; 100 says that there may be more. */
  deadLetters: z.number(),
  /** The last 60 minutes, oldest first; the last one is not over yet. */
  minutes: z.array(minute),
});

const workflowRow = z.object({
  name: z.string(),
  /** In which new runs start. */
  version: z.number(),
  /** Live workers that run it. */
  workers: z.number(),
  /** Runs by status; those that ended as long as they are kept. */
  runs: z.record(z.enum(RUN_STATUSES), z.number()),
});

/** Answer of `GET /v1/overview`: one sentence, what is wrong, and a row per controller and workflow. */
export const overviewSchema = z.object({
  cluster: z.string(),
  clusters: z.array(z.string()),
  at: z.string(),
  summary: z.string(),
  /** Worst first; empty when all is well. */
  problems: z.array(problem),
  controllers: z.array(controllerRow),
  workflows: z.array(workflowRow),
  workers: z.number(),
});

export type Overview = z.infer<typeof overviewSchema>;
export type OverviewProblem = z.infer<typeof problem>;
export type OverviewController = z.infer<typeof controllerRow>;
export type OverviewWorkflow = z.infer<typeof workflowRow>;
