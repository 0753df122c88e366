import type { RunStatus } from "@konverge/core";
import type { AnyWorkflow } from "@konverge/workflow";
import { replayHistory } from "@konverge/workflow";
import type { MemoryRun } from "@konverge/workflow/memory";
import { normalizerOf } from "./end-state.ts";
import type { SimulatedRun } from "./simulated-run.ts";

/** A run of a workflow, for invariants and comparisons. */
export interface SimulatedRunState {
  /** The name of its workflow. */
  readonly workflow: string;
  /** The id, such as `run-1`. */
  readonly id: string;
  /** At most one run with this key is active at a time. */
  readonly key?: string;
  /** The status, such as `waiting` or `done`. */
  readonly status: RunStatus;
  /** The input of the current round. */
  readonly input: unknown;
  /** The result of a run that is `done`. */
  readonly result?: unknown;
  /** The error of a run that has failed or was cancelled. */
  readonly error?: { readonly code: string; readonly message: string };
  /** The names of the recorded steps, in order. */
  readonly steps: readonly string[];
}

export function stateOf({ steps, ...run }: MemoryRun): SimulatedRunState {
  return { ...run, steps: [...steps.keys()] };
}

export type CompareRun = (run: SimulatedRunState) => unknown;

/** By default, a run ends in the same way with the same steps, whatever their order. */
const compareByDefault = ({ status, result, error, steps }: SimulatedRunState) => ({
  status,
  result,
  error: error?.code,
  steps: steps.toSorted(),
});

/** The runs at the end of a simulation, by a name that is equal in all of them. Of the runs with one key, the last one counts. */
export function runStatesOf(
  run: SimulatedRun,
  workflows: readonly AnyWorkflow[],
  compare: CompareRun = compareByDefault,
): Map<string, string[]> {
  const all = workflows.flatMap(({ name }) => run.workflows.of(name));
  const normalize = normalizerOf(run);
  const states = new Map<string, string[]>();
  for (const each of all) {
    if (
      each.key !== undefined &&
      all.findLast(({ workflow, key }) => workflow === each.workflow && key === each.key) !== each
    )
      continue;
    const kept = compare(stateOf(each));
    if (kept === undefined) continue;
    const name = `run ${each.workflow} ${nameOfRun(each, all)}`;
    const text = normalize(kept);
    states.set(name, [...(states.get(name) ?? []), text].toSorted());
  }
  return states;
}

/** The ids of runs of controllers have a hash of the object's uid. */
function nameOfRun({ id, key, parent }: MemoryRun, all: readonly MemoryRun[]): string {
  if (key !== undefined) return key;
  const found =
    parent && all.find((one) => one.id === parent.id && one.workflow === parent.workflow);
  if (found === undefined || !id.startsWith(found.id)) return id;
  return `${nameOfRun(found, all)}${id.slice(found.id.length)}`;
}

/** Checks that no run is blocked. */
export function checkRuns(run: SimulatedRun, workflows: readonly AnyWorkflow[]): void {
  for (const { workflow, id, status, blockedReason } of workflows.flatMap(({ name }) =>
    run.workflows.of(name),
  )) {
    if (status === "blocked") run.violate("no blocked runs", `${workflow}/${id}: ${blockedReason}`);
  }
}

/** Replays the functions of all runs on their records. */
export async function checkReplays(
  run: SimulatedRun,
  workflows: readonly AnyWorkflow[],
): Promise<void> {
  for (const workflow of workflows) {
    for (const { id } of run.workflows.of(workflow.name)) {
      const history = await run.workflows.history({ workflow: workflow.name, id });
      const result = history && (await replayHistory(workflow, history));
      if (result?.fits === false) {
        run.violate(
          "runs are deterministic",
          `a replay of ${workflow.name}/${id} differs: ${result.reason}`,
        );
      }
    }
  }
}
