import { KEY_PHASES } from "@konverge/core";
import { z } from "zod";

/** The codes of causes. An explanation lists them in this order, the root of the chain first. */
export const EXPLANATION_CAUSES = [
  "restored",
  "no_workers",
  "unserved",
  "api_server_isolated",
  "api_server_outage",
  "paused",
  "object_missing",
  "loop",
  "contention",
  "conflict",
  "worker_lost",
  "attempt_failed",
  "attempt_deferred",
  "attempt_cancelled",
  "approval_awaited",
  "dead_lettered",
  "no_leader",
  "source_failing",
  "run_blocked",
  "run_failed",
  "run_open",
  "child_not_ready",
  "condition",
  "terminating",
  "outdated",
  "calls_wait",
  "running",
  "queued",
  "retry_scheduled",
  "requeue_scheduled",
  "never_requested",
] as const;

/** A fact behind a cause. */
const evidence = z.object({
  kind: z.enum([
    "attempt",
    "request",
    "worker",
    "guard",
    "pause",
    "manager",
    "run",
    "source",
    "child",
    "condition",
    "hint",
  ]),
  /** ID or name, for example of the attempt or run. */
  name: z.string(),
  at: z.string().optional(),
  detail: z.string().optional(),
});

const cause = z.object({
  code: z.enum(EXPLANATION_CAUSES),
  /** `info`: the expected course of work. */
  level: z.enum(["error", "warning", "info"]),
  /** One sentence without a period. */
  message: z.string(),
  since: z.string().optional(),
  /** The next step, with a command if there is one. */
  action: z.string().optional(),
  /** Path of the dashboard page with the details. */
  page: z.string().optional(),
  /** Page of the documentation. */
  docs: z.string().optional(),
  evidence: z.array(evidence),
});

/** Response of `GET /v1/objects/{cluster}/{controller}/{namespace}/{name}/explanation`. */
export const explanationSchema = z.object({
  key: z.string(),
  at: z.string(),
  /** `ok`: nothing is wrong. `waiting`: work continues by itself. `blocked`: at least one cause is an error or a warning. */
  verdict: z.enum(["ok", "waiting", "blocked"]),
  /** Missing for an object that was never requested. */
  phase: z.enum(KEY_PHASES).optional(),
  summary: z.string(),
  /** The root of the chain first. */
  causes: z.array(cause),
  /** Why the object itself could not be read; its conditions and children are then unknown. */
  unread: z.string().optional(),
});

export type Explanation = z.infer<typeof explanationSchema>;
export type ExplanationCause = z.infer<typeof cause>;
