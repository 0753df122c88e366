import type { OverviewProblem, OverviewWorkflow, RunList } from "@konverge/contracts";
import { cut } from "./problem-text.ts";

type Run = RunList["items"][number];

/** Runs that need attention, newest first. */
export interface RunTrouble {
  readonly blocked: readonly Run[];
  /** Failed in the last hour. */
  readonly failed: readonly Run[];
}

/** Limits the problems of one kind, so that others remain visible. */
const MOST_OF_A_KIND = 3;

/** Finds the problems of workflows and their runs. */
export function findRunProblems({
  workflows,
  runs: { blocked, failed },
}: {
  readonly workflows: readonly OverviewWorkflow[];
  readonly runs: RunTrouble;
}): OverviewProblem[] {
  return [
    ...workflows.flatMap(ofWorkflow),
    ...problemsOf(blocked, {
      code: "run_blocked",
      level: "error",
      one: ({ blockedReason = "" }) => `is blocked: ${blockedReason}`,
      many: (count) => (count === 1 ? "1 run is blocked" : `${count} runs are blocked`),
    }),
    ...problemsOf(failed, {
      code: "run_failed",
      level: "warning",
      one: ({ error }) => `failed: ${error?.message ?? ""}`,
      many: (count) => `${count === 1 ? "1 run" : `${count} runs`} failed in the last hour`,
    }),
  ];
}

function ofWorkflow({ name, workers, runs }: OverviewWorkflow): OverviewProblem[] {
  const { queued, running, waiting, blocked, pausing, compensating } = runs;
  const open = queued + running + waiting + blocked + pausing + compensating;
  if (workers > 0 || open === 0) return [];
  const what = open === 1 ? "1 run has not ended" : `${open} runs have not ended`;
  const message = `${name}: ${what} and no worker runs the workflow`;
  return [{ code: "unserved", level: "error", message, workflow: name }];
}

/** Lists each run, or counts the runs per workflow if there are many. */
function problemsOf(
  runs: readonly Run[],
  words: Pick<OverviewProblem, "code" | "level"> & {
    readonly one: (run: Run) => string;
    readonly many: (count: number) => string;
  },
): OverviewProblem[] {
  const { code, level, one, many } = words;
  if (runs.length <= MOST_OF_A_KIND) {
    return runs.map((run) => {
      const { id, workflow } = run;
      const message = `${workflow}: ${id.split("/").slice(2).join("/")} ${one(run)}`;
      return { code, level, message: cut(message), workflow, run: id };
    });
  }
  return [...Map.groupBy(runs, ({ workflow }) => workflow)].map(([workflow, { length }]) => {
    return { code, level, message: `${workflow}: ${many(length)}`, workflow };
  });
}
