import {
  OVERVIEW_PROBLEMS,
  type ContentionReport,
  type GuardView,
  type Overview,
  type OverviewController,
  type OverviewProblem,
  type OverviewWorkflow,
  type PauseList,
  type PauseView,
} from "@konverge/contracts";
import { parseKey } from "@konverge/core";
import type { AnnouncedWorker } from "@konverge/queue";
import { findRunProblems, type RunTrouble } from "./find-run-problems.ts";

/** The data behind the problems. */
export interface Findings {
  readonly controllers: readonly OverviewController[];
  readonly workflows: readonly OverviewWorkflow[];
  readonly runs: RunTrouble;
  readonly workers: readonly AnnouncedWorker[];
  readonly guards: readonly GuardView[];
  /** Objects by lost races of the last hour, most first. */
  readonly contendedObjects: ContentionReport["contendedObjects"];
  /** Keys that are slowed down now. */
  readonly loops: readonly string[];
  readonly pauses: PauseList["items"];
  /** Attempts of the last hour whose worker died, by controller. */
  readonly lost: ReadonlyMap<string, number>;
}

/** Ten times the age in a busy queue. */
const OLD_MS = 60_000;
/** The period of recent failures. Fewer failures are retries that succeeded. */
const RECENT_MINUTES = 5;
const MIN_FAILED = 3;
const FAILING_SHARE = 0.1;
/** Conflicts per hour that are worth a warning. */
const CONTENTION_CONFLICTS = 20;
/** Limits the problems of one kind, so that others remain visible. */
const MOST_OF_A_KIND = 3;

/** Finds all problems, most severe first, and summarizes them in one sentence. */
export function findProblems(found: Findings): Pick<Overview, "summary" | "problems"> {
  const problems = [
    ...ofWorkers(found),
    ...ofGuards(found.guards),
    ...found.controllers.flatMap((row) => ofController(row, found.lost.get(row.name) ?? 0)),
    ...findRunProblems(found),
    ...ofContention(found),
    ...ofPauses(found.pauses),
  ].toSorted(
    (one, other) => OVERVIEW_PROBLEMS.indexOf(one.code) - OVERVIEW_PROBLEMS.indexOf(other.code),
  );
  return { summary: summaryOf(problems, found), problems };
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

function ofWorkers({ controllers, workers }: Findings): OverviewProblem[] {
  const skewed = controllers.filter(({ name }) => {
    const digests = workers.flatMap(({ definitions }) => definitions[name]?.digest ?? []);
    return new Set(digests).size > 1;
  });
  return [
    ...(workers.length === 0 && controllers.length > 0
      ? [
          {
            code: "no_workers",
            level: "error",
            message: "No live workers; requests stay queued",
          } as const,
        ]
      : []),
    ...skewed.map(({ name }) => ({
      code: "version_skew" as const,
      level: "warning" as const,
      message: `Workers run different versions of ${name}`,
      controller: name,
    })),
  ];
}

function ofGuards(guards: readonly GuardView[]): OverviewProblem[] {
  return guards.flatMap(({ cluster, breaker, workers }): OverviewProblem[] => {
    switch (breaker.state) {
      case "closed":
        return [];
      case "halfOpen":
        return [
          {
            code: "breaker_half_open",
            level: "warning",
            message: `API server of ${cluster} is being probed after a failure`,
          },
        ];
      case "isolated":
        return [
          {
            code: "breaker_open",
            level: "error",
            message: `${cluster} is isolated by ${breaker.isolated?.by ?? "an operator"}: ${breaker.isolated?.reason ?? ""}`,
          },
        ];
      case "open":
        return [
          {
            code: "breaker_open",
            level: "error",
            message: `API server of ${cluster} fails for ${workers.failing.length} of ${count(workers.live.length, "worker")}; no calls are sent`,
          },
        ];
    }
  });
}

function ofController(row: OverviewController, lost: number): OverviewProblem[] {
  const { name, workers, waiting, oldestRequestAgeMs = 0, deadLetters } = row;
  const problems: OverviewProblem[] = [];
  const add = (code: OverviewProblem["code"], level: OverviewProblem["level"], message: string) =>
    problems.push({ code, level, message, controller: name });
  if (workers === 0 && waiting > 0) {
    add(
      "unserved",
      "error",
      `${name}: ${count(waiting, "object")} waiting, but no worker runs the controller`,
    );
  }
  if (deadLetters > 0) {
    add(
      "dead_letters",
      "error",
      `${name}: ${deadLetters >= 100 ? "100 or more" : deadLetters} dead-lettered ${deadLetters === 1 ? "key" : "keys"}`,
    );
  }
  if (oldestRequestAgeMs > OLD_MS && workers > 0) {
    add(
      "backlog",
      "warning",
      `${name}: oldest request has waited ${Math.round(oldestRequestAgeMs / 1_000)} s`,
    );
  }
  const recent = row.minutes.slice(-RECENT_MINUTES);
  const failed = recent.reduce((sum, each) => sum + each.failed, 0);
  const all = recent.reduce((sum, each) => sum + each.ok + each.failed + each.conflict, 0);
  if (failed >= MIN_FAILED && failed > all * FAILING_SHARE) {
    add(
      "failing",
      "warning",
      `${name}: ${failed} of ${all} attempts failed in ${RECENT_MINUTES} minutes`,
    );
  }
  if (lost > 0) {
    add(
      "lost",
      "warning",
      `${name}: ${count(lost, "attempt")} lost ${lost === 1 ? "its" : "their"} worker in the last hour`,
    );
  }
  return problems;
}

function ofContention({ contendedObjects, loops }: Findings): OverviewProblem[] {
  const contended = contendedObjects.filter(({ conflicts }) => conflicts >= CONTENTION_CONFLICTS);
  return [
    ...(loops.length > MOST_OF_A_KIND
      ? [worth("loop", `${loops.length} objects are throttled because of reconcile loops`)]
      : loops.map((key) => ({
          ...worth("loop", `${nameOf(key)} is throttled because of a reconcile loop`),
          key,
        }))),
    ...(contended.length > MOST_OF_A_KIND
      ? [
          worth(
            "contention",
            `${contended.length} objects had ${CONTENTION_CONFLICTS} or more conflicts in the last hour`,
          ),
        ]
      : contended.map(({ namespace, name, conflicts }) =>
          worth(
            "contention",
            `${namespace === undefined ? name : `${namespace}/${name}`} had ${conflicts} conflicts in the last hour`,
          ),
        )),
  ];
}

function worth(code: OverviewProblem["code"], message: string): OverviewProblem {
  return { code, level: "warning", message };
}

function ofPauses(pauses: Findings["pauses"]): OverviewProblem[] {
  return pauses.slice(0, MOST_OF_A_KIND).map(({ controller, by, reason, scope }) => ({
    code: "paused",
    level: "info",
    message: `${controller}${scopeText(scope)} is paused by ${by}: ${reason}`,
    controller,
    ...(scope.kind === "key" ? { key: scope.key } : {}),
  }));
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
  const { namespace, name } = parseKey(key);
  return namespace === undefined ? name : `${namespace}/${name}`;
}

function count(number: number, what: string): string {
  return `${number} ${what}${number === 1 ? "" : "s"}`;
}
