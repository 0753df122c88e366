import { childIdOf, roundIdOf, spreadOf, type RunRef } from "../define/run-ref.ts";

/** A spread step of one round of a run. A retry of the run has others. */
export interface SpreadStep extends RunRef {
  readonly step: string;
  readonly createdAtMs: number;
  readonly round: number;
  /** How often the ended run was continued by a retry. */
  readonly reopened: number;
}

/** The input of the run as which a spread step is stored. */
export interface SpreadInput {
  readonly spread: SpreadStep;
  /** The last record of the run when it began to wait for the step. */
  readonly seq: number;
}

export function spreadStepOf(
  {
    workflow,
    id,
    run: { createdAtMs, round = 1 },
    reopened = 0,
  }: RunRef & {
    readonly run: { readonly createdAtMs: number; readonly round?: number };
    readonly reopened?: number;
  },
  step: string,
): SpreadStep {
  return { workflow, id, step, createdAtMs, round, reopened };
}

/** Returns the run as which a spread step is stored. */
export function refOfSpread({ workflow, id, step, ...of }: SpreadStep): RunRef {
  const round = `${roundIdOf({ id, round: of.round })}@${of.createdAtMs}.${of.reopened}`;
  return { workflow: spreadOf(workflow), id: childIdOf(round, step) };
}
