import type { OverviewProblem, OverviewWorkflow, RunList } from "@konverge/contracts";
import { defined } from "@konverge/core";
import type { ServedQueue } from "@konverge/queue";
import { queueOfWorkflow } from "@konverge/workflow";
import { cut, sinceMs, tallied } from "./problem-text.ts";

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
  served,
  runs: { blocked, failed },
}: {
  readonly workflows: readonly OverviewWorkflow[];
  readonly served: ReadonlyMap<string, ServedQueue>;
  readonly runs: RunTrouble;
}): OverviewProblem[] {
  return [
    ...workflows.flatMap((row) => ofWorkflow(row, served.get(queueOfWorkflow(row.name)))),
    ...problemsOf(blocked, {
      code: "run_blocked",
      level: "error",
      one: "is blocked",
      many: (count) => (count === 1 ? "1 run is blocked" : `${count} runs are blocked`),
      causeOf: ({ blockedReason }) => blockedReason,
      consequence:
        "Records are kept; none is lost. Blocked runs continue after the cause is removed.",
      action: (id) =>
        `Remove the cause. Runs are rechecked every minute; to recheck now, run \`${id}\``,
    }),
    ...problemsOf(failed, {
      code: "run_failed",
      level: "warning",
      one: "failed",
      many: (count) => `${count === 1 ? "1 run" : `${count} runs`} failed in the last hour`,
      causeOf: ({ error }) => error?.message,
      consequence: "Failed runs have ended. Steps with an undo were undone.",
      action: (id) => `Fix the cause, then run \`${id}\``,
    }),
  ];
}

function ofWorkflow(
  { name, workers, runs }: OverviewWorkflow,
  served: ServedQueue | undefined,
): OverviewProblem[] {
  const { queued, running, waiting, blocked, pausing, compensating } = runs;
  const open = queued + running + waiting + blocked + pausing + compensating;
  if (workers > 0 || open === 0) return [];
  const what = open === 1 ? "1 run has not ended" : `${open} runs have not ended`;
  const message = `${name}: ${what} and no worker runs the workflow`;
  return [
    {
      code: "unserved",
      level: "error",
      subject: name,
      message,
      ...sinceMs(served?.seenMs),
      cause: `No live worker has ${name} in its configuration`,
      consequence: "Runs are kept and continue when a worker starts.",
      action: "Start a worker with the configuration of the workflow",
      workflow: name,
    },
  ];
}

interface Words extends Pick<OverviewProblem, "code" | "level"> {
  readonly one: string;
  readonly many: (count: number) => string;
  readonly causeOf: (run: Run) => string | undefined;
  readonly consequence: string;
  /** Describes the next step with a command. */
  readonly action: (command: string) => string;
}

/** Lists each run, or counts the runs per workflow if there are many. */
function problemsOf(runs: readonly Run[], words: Words): OverviewProblem[] {
  const { code, level, one, many, causeOf, consequence, action } = words;
  if (runs.length <= MOST_OF_A_KIND) {
    return runs.map((run) => {
      const { id, workflow, blockedAt, endedAt } = run;
      const since = blockedAt ?? endedAt;
      const subject = id.split("/").slice(2).join("/");
      const cause = causeOf(run);
      return {
        code,
        level,
        message: cut(`${workflow}: ${subject} ${one}`),
        subject,
        ...defined({ since }),
        ...(cause === undefined ? {} : { cause: cut(cause) }),
        consequence,
        action: action(`konverge run retry ${id} --reason WHY`),
        workflow,
        run: id,
      };
    });
  }
  return [...Map.groupBy(runs, ({ workflow }) => workflow)].map(([workflow, found]) => {
    const [since] = found
      .flatMap(({ blockedAt, endedAt }) => blockedAt ?? endedAt ?? [])
      .toSorted();
    const causes = found.flatMap((run) => causeOf(run) ?? []);
    return {
      code,
      level,
      message: `${workflow}: ${many(found.length)}`,
      subject: workflow,
      count: found.length,
      ...defined({ since }),
      ...(causes.length === 0 ? {} : { cause: tallied(causes) }),
      consequence,
      action: action(`konverge run retry --workflow ${workflow} ...`),
      workflow,
    };
  });
}
