import { RUN_STATUSES } from "@konverge/core";
import { z } from "zod";
import { activityMinuteSchema } from "./activity-api.ts";
import { text } from "./query-fields.ts";

/** The codes of problems, most severe first. */
export const OVERVIEW_PROBLEMS = [
  "restored",
  "no_workers",
  "redis_memory",
  "api_server_outage",
  "api_server_isolated",
  "unserved",
  "dead_letters",
  "run_blocked",
  "run_failed",
  "backlog",
  "failing",
  "source_failing",
  "audit_not_delivered",
  "notification_failing",
  "lost",
  "loop",
  "contention",
  "clock_skew",
  "version_skew",
  "paused",
] as const;

/** Query of `GET /v1/overview`. */
export const overviewQuerySchema = z.strictObject({
  /** Default: the cluster of the API process. */
  cluster: text.optional(),
});

const symptom = z.object({
  code: z.enum(OVERVIEW_PROBLEMS),
  message: z.string(),
  controller: z.string().optional(),
});

/** A problem is an episode: it is listed once, from its first sign until it ends. */
const problem = z.object({
  code: z.enum(OVERVIEW_PROBLEMS),
  /** `info` is not a fault, for example a pause. */
  level: z.enum(["error", "warning", "info"]),
  /** One clause. */
  message: z.string(),
  /** The subject, for example a controller or an object. */
  subject: z.string().optional(),
  /** How often it occurred, or how many objects it affects. */
  count: z.number().optional(),
  /** The last 5 minutes compared with the 5 minutes before. */
  trend: z.enum(["rising", "falling", "steady"]).optional(),
  /** When it began, if known. */
  since: z.string().optional(),
  /** The last error, or the reason that an operator gave. */
  cause: z.string().optional(),
  /** What it affects, and whether work is lost. */
  consequence: z.string().optional(),
  /** The next step. */
  action: z.string().optional(),
  /** Problems that this one explains. They are listed only here. */
  symptoms: z.array(symptom).optional(),
  controller: z.string().optional(),
  /** `controller/cluster/resource.group/namespace/name`. */
  key: z.string().optional(),
  workflow: z.string().optional(),
  /** Run ID. */
  run: z.string().optional(),
});

const minute = z.object({
  /** Attempts of the minute that ended well. */
  ok: z.number(),
  failed: z.number(),
  /** Attempts that ended with a conflict; their keys run again immediately. */
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
  /** Age of the oldest among the first and last 20 requests in the queue. */
  oldestRequestAgeMs: z.number().optional(),
  /** Live workers that run it. */
  workers: z.number(),
  /** Percentiles of the durations in the last hour, within a tenth. */
  p50Ms: z.number().optional(),
  p99Ms: z.number().optional(),
  /** Dead-lettered keys, counted up to 100. */
  deadLetters: z.number(),
  /** Attempts that the live workers can run at the same time; missing for workers of older versions. */
  slots: z.number().optional(),
  /** The last 60 minutes, oldest first. The last one is incomplete. */
  minutes: z.array(minute),
});

const workflowRow = z.object({
  name: z.string(),
  /** The version of new runs. */
  version: z.number(),
  /** Live workers that run it. */
  workers: z.number(),
  /** Runs by status. Ended runs count until they are deleted. */
  runs: z.record(z.enum(RUN_STATUSES), z.number()),
});

/** Response of `GET /v1/overview`. */
export const overviewSchema = z.object({
  cluster: z.string(),
  clusters: z.array(z.string()),
  at: z.string(),
  summary: z.string(),
  /** Most severe first. */
  problems: z.array(problem),
  controllers: z.array(controllerRow),
  workflows: z.array(workflowRow),
  workers: z.number(),
  /** The last 60 minutes of all controllers, oldest first. The last one is incomplete. */
  activity: z.array(activityMinuteSchema),
});

export type Overview = z.infer<typeof overviewSchema>;
export type OverviewProblem = z.infer<typeof problem>;
export type OverviewController = z.infer<typeof controllerRow>;
export type OverviewWorkflow = z.infer<typeof workflowRow>;
