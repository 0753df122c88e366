import type { OverviewProblem } from "@konverge/contracts";
import { viewHref } from "../../state/cluster.ts";
import { objectHref, runHref } from "../../state/router.ts";

/** Returns the address of the view with the details of a problem. */
export function problemHref({
  code,
  controller,
  key,
  workflow,
  run,
}: Pick<OverviewProblem, "code" | "controller" | "key" | "workflow" | "run">): string {
  if (key !== undefined) return objectHref(key);
  if (run !== undefined) return runHref(run);
  switch (code) {
    case "restored":
    case "no_workers":
    case "redis_memory":
    case "clock_skew":
    case "version_skew":
    case "unserved":
    case "source_failing":
    case "audit_not_delivered":
    case "notification_failing":
      return viewHref("/workers");
    case "api_server_outage":
    case "api_server_isolated":
      return viewHref("/guards");
    case "run_blocked":
      return viewHref("/workflows", { workflow, status: "blocked" });
    case "run_failed":
      return viewHref("/workflows", { workflow, status: "failed" });
    case "dead_letters":
      return viewHref("/dead-letters", { controller });
    case "backlog":
      return viewHref("/objects", { controller, phase: "waiting" });
    case "failing":
      return viewHref("/attempts", { controller, outcome: "retry" });
    case "lost":
      return viewHref("/attempts", { controller, outcome: "lost" });
    case "loop":
    case "contention":
      return viewHref("/contention");
    case "paused":
      return viewHref("/objects", { controller, phase: "paused" });
  }
}

/** Returns the name of the view that {@link problemHref} leads to. */
export function problemPlace({
  code,
  key,
  run,
}: Pick<OverviewProblem, "code" | "key" | "run">): string {
  if (key !== undefined) return "Object";
  if (run !== undefined) return "Run";
  switch (code) {
    case "restored":
    case "no_workers":
    case "redis_memory":
    case "clock_skew":
    case "version_skew":
    case "unserved":
    case "source_failing":
    case "audit_not_delivered":
    case "notification_failing":
      return "Workers";
    case "api_server_outage":
    case "api_server_isolated":
      return "Guard";
    case "run_blocked":
    case "run_failed":
      return "Runs";
    case "dead_letters":
      return "Dead letters";
    case "backlog":
    case "paused":
      return "Objects";
    case "failing":
    case "lost":
      return "Attempts";
    case "loop":
    case "contention":
      return "Contention";
  }
}
