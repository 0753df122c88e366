import {
  OVERVIEW_PROBLEMS,
  type GuardView,
  type Overview,
  type OverviewController,
  type OverviewProblem,
  type OverviewWorkflow,
  type PauseList,
  type PauseView,
  type SourceView,
} from "@konverge/contracts";
import { parseKey, shortName } from "@konverge/core";
import type {
  AnnouncedWorker,
  NotificationRecord,
  RestoreState,
  ServedQueue,
} from "@konverge/queue";
import type { AuditTargetState } from "../audit/audit-export.ts";
import { findGuardProblems } from "./find-cluster-problems.ts";
import {
  findMemoryProblems,
  findRestoreProblems,
  isFull,
  type FoundRedis,
} from "./find-redis-problems.ts";
import { findContentionProblems, type ContentionFindings } from "./find-contention-problems.ts";
import { findAuditProblems, findNotificationProblems } from "./find-delivery-problems.ts";
import { findControllerProblems, type ControllerTrouble } from "./find-controller-problems.ts";
import { findRunProblems, type RunTrouble } from "./find-run-problems.ts";
import { findSourceProblems } from "./find-source-problems.ts";
import { foldSymptoms } from "./fold-symptoms.ts";
import { count, sinceMs, tallied } from "./problem-text.ts";

/** The data behind the problems. */
export interface Findings extends ContentionFindings {
  readonly controllers: readonly OverviewController[];
  readonly workflows: readonly OverviewWorkflow[];
  readonly runs: RunTrouble;
  readonly workers: readonly AnnouncedWorker[];
  readonly guards: readonly GuardView[];
  readonly restore: RestoreState;
  readonly redis: FoundRedis;
  /** By queue. */
  readonly served: ReadonlyMap<string, ServedQueue>;
  readonly pauses: PauseList["items"];
  readonly sources: readonly SourceView[];
  readonly auditTargets: readonly AuditTargetState[];
  readonly notifications: readonly NotificationRecord[];
  /** By controller. */
  readonly troubles: ReadonlyMap<string, ControllerTrouble>;
}

const NO_TROUBLE: ControllerTrouble = { lost: 0, deadLetters: [], errors: [] };
/** The part of a digest that the charts show as well. */
const DIGEST_LENGTH = 7;

/** Finds all problems, most severe first, and summarizes them in one sentence. */
export function findProblems(found: Findings): Pick<Overview, "summary" | "problems"> {
  const all = [
    ...findRestoreProblems(found.restore),
    ...findMemoryProblems(found.redis),
    ...ofClocks(found.workers),
    ...ofWorkers(found),
    ...findGuardProblems(found.guards, found.controllers),
    ...found.controllers.flatMap((row) =>
      findControllerProblems(row, {
        ...(found.troubles.get(row.name) ?? NO_TROUBLE),
        served: found.served.get(row.name),
      }),
    ),
    ...findSourceProblems(found.sources),
    ...findAuditProblems(found.auditTargets),
    ...findNotificationProblems(found.notifications),
    ...findRunProblems(found),
    ...findContentionProblems(found),
    ...ofPauses(found.pauses),
  ].toSorted((one, other) => rankOf(one) - rankOf(other));
  const problems = foldSymptoms(all, found.troubles);
  return { summary: summaryOf(problems, found), problems };
}

/** Loops and other contention are ranked together, by their cost. */
function rankOf({ code }: OverviewProblem): number {
  return OVERVIEW_PROBLEMS.indexOf(code === "loop" ? "contention" : code);
}

function summaryOf(
  problems: readonly OverviewProblem[],
  { controllers, workflows, workers }: Findings,
): string {
  const served = [
    ...(controllers.length === 0 ? [] : [count(controllers.length, "controller")]),
    ...(workflows.length === 0 ? [] : [count(workflows.length, "workflow")]),
  ];
  if (served.length === 0) return "No controllers or workflows found.";
  const errors = problems.filter(({ level }) => level === "error").length;
  const warnings = problems.filter(({ level }) => level === "warning").length;
  if (errors > 0) {
    return `${count(errors, "error")}${warnings === 0 ? "" : ` and ${count(warnings, "warning")}`}.`;
  }
  if (warnings > 0) return `No errors, ${count(warnings, "warning")}.`;
  return `No problems: ${served.join(" and ")} on ${count(workers.length, "worker")}.`;
}

function ofWorkers({ controllers, workers, served, redis }: Findings): OverviewProblem[] {
  const lastMs = Math.max(...[...served.values()].map(({ seenMs }) => seenMs));
  return [
    // In a full Redis, live workers cannot store their heartbeats.
    ...(workers.length === 0 && controllers.length > 0 && !isFull(redis)
      ? [
          {
            code: "no_workers",
            level: "error",
            message: "No live workers",
            ...sinceMs(lastMs),
            cause: "No worker has sent a heartbeat in the last 15 s",
            consequence: "Requests stay queued; none is lost.",
            action: "Start a worker with `konverge worker --config <file>`",
          } as const,
        ]
      : []),
    ...controllers.flatMap(({ name }): OverviewProblem[] => {
      const digests = workers.flatMap(({ definitions }) => definitions[name]?.digest ?? []);
      if (new Set(digests).size <= 1) return [];
      return [
        {
          code: "version_skew",
          level: "warning",
          subject: name,
          message: `Workers run different versions of ${name}`,
          ...sinceMs(served.get(name)?.mixedMs),
          cause: tallied(digests.map((digest) => `version ${digest.slice(0, DIGEST_LENGTH)}`)),
          consequence: "The version that reconciles an object depends on the worker.",
          action: "Complete the rollout, or roll it back",
          controller: name,
        },
      ];
    }),
  ];
}

/** Returns the workers whose clocks differ from that of Redis. If all do by the same, it is the clock of Redis. */
function ofClocks(workers: Findings["workers"]): OverviewProblem[] {
  return workers.flatMap(({ workerId, host, clockSkew }): OverviewProblem[] => {
    if (clockSkew === undefined) return [];
    const { aheadMs, sinceMs: beganMs } = clockSkew;
    const seconds = Math.round(Math.abs(aheadMs) / 1_000);
    const side = aheadMs > 0 ? "ahead of" : "behind";
    return [
      {
        code: "clock_skew",
        level: "warning",
        subject: workerId,
        message: `The clock of worker ${workerId} is ${seconds} s ${side} Redis`,
        ...sinceMs(beganMs),
        cause: `The machine ${host} or that of Redis does not synchronize its clock`,
        consequence: "Backoffs end too early or too late; no request is lost.",
        action: "Synchronize the clocks of both machines with NTP",
      },
    ];
  });
}

function ofPauses(pauses: Findings["pauses"]): OverviewProblem[] {
  return pauses.map(({ controller, by, reason, scope, since }) => ({
    code: "paused",
    level: "info",
    message: `${controller}${scopeText(scope)} is paused by ${by}: ${reason}`,
    since,
    cause: reason,
    consequence: "Requests are kept and start on resume.",
    action: `Resume with \`konverge queue resume ${controller}${resumeFlags(scope)}\``,
    controller,
    ...(scope.kind === "key" ? { key: scope.key } : {}),
  }));
}

function resumeFlags(scope: PauseView["scope"]): string {
  switch (scope.kind) {
    case "controller":
      return "";
    case "namespace":
      return ` -n ${scope.namespace}`;
    case "key": {
      const { namespace, name } = parseKey(scope.key);
      return ` ${name}${namespace === undefined ? "" : ` -n ${namespace}`}`;
    }
  }
}

function scopeText(scope: PauseView["scope"]): string {
  switch (scope.kind) {
    case "controller":
      return "";
    case "namespace":
      return `: ${scope.namespace}`;
    case "key":
      return `: ${nameOf(scope.key)}`;
  }
}

/** The short name of the object of a key. */
function nameOf(key: string): string {
  return shortName(parseKey(key));
}
