import type { OverviewProblem, OverviewWorkflow, RunList } from "@konverge/contracts";

type Run = RunList["items"][number];

/** Runs that need a person, newest first. */
export interface RunTrouble {
  readonly blocked: readonly Run[];
  /** Of the last hour. */
  readonly failed: readonly Run[];
}

/** So that one cause does not push the others off the screen. */
const MOST_OF_A_KIND = 3;
/** Errors may be long; the run's page has all of it. */
const MAX_TEXT = 300;

/** What is wrong with workflows and their runs. */
export function findRunProblems({
  workflows,
  runs: { blocked, failed },
}: {
  readonly workflows: readonly OverviewWorkflow[];
  readonly runs: RunTrouble;
}): OverviewProblem[] {
  return [
    ...workflows.flatMap(ofWorkflow),
    ...told(blocked, {
      code: "run_blocked",
      level: "error",
      one: ({ blockedReason = "" }) => `is blocked: ${blockedReason}`,
      many: (count) => (count === 1 ? "1 run is blocked" : `${count} runs are blocked`),
    }),
    ...told(failed, {
      code: "run_failed",
      level: "warning",
      one: ({ error }) => `failed: ${error?.message ?? ""}`,
      many: (count) => `${count === 1 ? "1 run" : `${count} runs`} failed in the last hour`,
    }),
  ];
}

function ofWorkflow({ name, workers, runs }: OverviewWorkflow): OverviewProblem[] {
  const open = runs.queued + runs.running + runs.waiting + runs.blocked + runs.compensating;
  if (workers > 0 || open === 0) return [];
  const what = open === 1 ? "1 run has not ended" : `${open} runs have not ended`;
  const message = `${name}: ${what} and no worker runs it`;
  return [{ code: "unserved", level: "error", message, workflow: name }];
}

/** Each by itself, or how many they are of each workflow. */
function told(
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
      const text = message.length > MAX_TEXT ? `${message.slice(0, MAX_TEXT)}…` : message;
      return { code, level, message: text, workflow, run: id };
    });
  }
  return [...Map.groupBy(runs, ({ workflow }) => workflow)].map(([workflow, { length }]) => {
    return { code, level, message: `${workflow}: ${many(length)}`, workflow };
  });
}
