import { ensureError, isKonvergeError, KonvergeError, TerminalError } from "@konverge/core";
import type { WorkflowContext } from "../define/define-workflow.ts";
import { Branch } from "../journal/branch.ts";
import type { StepRecord } from "../store/run-record.ts";
import { failsRun } from "./fails-run.ts";
import type { OpenChildren } from "./open-children.ts";
import { failureOf, StepFailedError } from "./step-failed-error.ts";
import type { VerbReplay } from "./verb-replay.ts";

type BranchFunction = (w: WorkflowContext) => Promise<unknown>;
export type BranchFunctions = Readonly<Record<string, BranchFunction>>;

export interface RaceOutcome {
  readonly branch: string;
  readonly value: unknown;
}

interface Lane {
  readonly name: string;
  readonly branch: Branch;
}

type Decision =
  | { readonly winner: string; readonly value: unknown }
  | { readonly winner: string; readonly error: Error };

/**
 * Runs branches until the first of them returns or fails, records that outcome, and ends the others. Each execution delivers the
 * recorded outcome, also if the functions of the branches take another time in it. Nothing else of a losing branch is delivered
 * after that record, so that a branch gets equally far in each execution.
 */
export async function race(
  replay: VerbReplay,
  children: OpenChildren,
  w: WorkflowContext,
  { branches, name }: { readonly branches: BranchFunctions; readonly name: string | undefined },
): Promise<RaceOutcome> {
  const { journal } = replay;
  const calls = Object.entries(branches);
  if (calls.length === 0) throw invalid("w.race needs at least one branch (got none)");
  const key = replay.nextKey(name ?? calls.map(([branch]) => branch).join(" | "));
  const lanes: Lane[] = [];
  const { promise: decided, resolve: decide, reject } = Promise.withResolvers<Decision>();
  const ends = calls.map(async ([winner, call]) => {
    const branch = new Branch();
    lanes.push({ name: winner, branch });
    try {
      const value = await branch.run(async () => await call(w));
      journal.assertFits(key, { kind: "race", value });
      decide({ winner, value });
    } catch (thrown) {
      const error = ensureError(thrown);
      // Neither a mistake in the code nor the cancellation, which all branches receive, is an outcome.
      if (failsRun(error) && !isCancellation(error)) decide({ winner, error });
      else reject(error);
    }
  });
  void Promise.all(ends);
  // After a restart, the record decides.
  decided.catch(() => undefined);
  const decision = journal.get(key) === undefined ? await decided : undefined;
  if (decision !== undefined) {
    for (const { branch } of losersOf(lanes, decision.winner)) branch.lose();
  }
  const record = await replay.settle(key, "race", async () => {
    // Only a race without a record waits for its decision.
    if (decision === undefined) throw new Error(`the record of race "${key}" is missing`);
    const lost = losersOf(lanes, decision.winner).flatMap((lane) => replay.begunIn(lane.branch));
    return await journal.commit(key, {
      ...recordOf(decision),
      ...(lost.length === 0 ? {} : { lost }),
    });
  });
  const { branch: winner = "" } = record;
  if (branches[winner] === undefined) return await replay.blockRace(key, winner);
  for (const { branch } of losersOf(lanes, winner)) replay.endBranch(branch, record, children);
  if (record.error !== undefined) throw errorOf(record);
  return { branch: winner, value: record.value };
}

function losersOf(lanes: readonly Lane[], winner: string): readonly Lane[] {
  return lanes.filter(({ name }) => name !== winner);
}

function isCancellation(error: Error): boolean {
  return isKonvergeError(error) && error.code === "cancelled";
}

function recordOf(decision: Decision): StepRecord {
  const { winner } = decision;
  if (!("error" in decision)) return { kind: "race", branch: winner, value: decision.value };
  const { error } = decision;
  return error instanceof StepFailedError
    ? { kind: "race", branch: winner, error: error.failure, failedStep: error.step }
    : { kind: "race", branch: winner, error: failureOf(error) };
}

/** Returns the error of the winner, which is the same in every execution. */
function errorOf({ error, failedStep }: StepRecord): Error {
  const failure = error ?? { code: "terminal", message: "" };
  return failedStep === undefined
    ? new TerminalError(failure.message)
    : new StepFailedError(failedStep, failure);
}

function invalid(message: string): KonvergeError {
  return new KonvergeError("invalid_workflow", message);
}
