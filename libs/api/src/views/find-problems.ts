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

/** What the judgement rests on. */
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

/** A backlog this old is worth a look: ten times what a busy queue of ours shows. */
const OLD_MS = 60_000;
/** Of the last minutes: fewer failures are a retry that helped. */
const RECENT_MINUTES = 5;
const MIN_FAILED = 3;
const FAILING_SHARE = 0.1;
/** Races lost in an hour before a person should look. */
const CONTENTION_CONFLICTS = 20;
/** So that one cause does not push the others off the screen. */
const MOST_OF_A_KIND = 3;

/** Everything that is wrong, worst first, and the one sentence that says so. */
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
  if (served.length === 0) return "No controller is known yet.";
  const bad = problems.filter(({ level }) => level === "error").length;
  const warn = problems.filter(({ level }) => level === "warning").length;
  if (bad > 0) {
    return `${count(bad, "thing")} ${bad === 1 ? "needs" : "need"} you${warn === 0 ? "" : `, ${warn} more to look at`}.`;
  }
  if (warn > 0) return `Work goes on; ${count(warn, "thing")} to look at.`;
  return `All is well: ${count(workers.length, "worker")} on ${served.join(" and ")}.`;
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
            message: "No worker is running: nothing is reconciled",
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
            message: `The API server of ${cluster} is being probed after a failure`,
          },
        ];
      case "isolated":
        return [
          {
            code: "breaker_open",
            level: "error",
            message: `${cluster} is isolated by ${breaker.isolated?.by ?? "a person"}: ${breaker.isolated?.reason ?? ""}`,
          },
        ];
      case "open":
        return [
          {
            code: "breaker_open",
            level: "error",
            message: `The API server of ${cluster} fails for ${workers.failing.length} of ${count(workers.live.length, "worker")}: no calls are sent`,
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
    add("unserved", "error", `${name}: ${count(waiting, "object")} wait and no worker runs it`);
  }
  if (deadLetters > 0) {
    add(
      "dead_letters",
      "error",
      `${name}: ${deadLetters >= 100 ? "100 or more" : deadLetters} dead ${deadLetters === 1 ? "letter" : "letters"}`,
    );
  }
  if (oldestRequestAgeMs > OLD_MS && workers > 0) {
    add(
      "backlog",
      "warning",
      `${name}: the oldest request waits ${Math.round(oldestRequestAgeMs / 1_000)} s`,
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
  const fought = contendedObjects.filter(({ conflicts }) => conflicts >= CONTENTION_CONFLICTS);
  return [
    ...(loops.length > MOST_OF_A_KIND
      ? [worth("loop", `${loops.length} objects run in circles and are slowed down`)]
      : loops.map((key) => ({
          ...worth("loop", `${nameOf(key)} runs in circles and is slowed down`),
          key,
        }))),
    ...(fought.length > MOST_OF_A_KIND
      ? [
          worth(
            "contention",
            `${fought.length} objects were fought over ${CONTENTION_CONFLICTS} times or more in the last hour`,
          ),
        ]
      : fought.map(({ namespace, name, conflicts }) =>
          worth(
            "contention",
            `${namespace === undefined ? name : `${namespace}/${name}`} was fought over ${conflicts} times in the last hour`,
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

/** The last parts of a key, as people write them. */
function nameOf(key: string): string {
  const { namespace, name } = parseKey(key);
  return namespace === undefined ? name : `${namespace}/${name}`;
}

function count(number: number, what: string): string {
  return `${number} ${what}${number === 1 ? "" : "s"}`;
}
