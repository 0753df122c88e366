import { childIdOf, roundIdOf, spreadOf, type RunRef } from "../define/run-ref.ts";
import type { RunView } from "./run-record.ts";

/** A spread step of one round of a run. A retry of the run has others. */
export interface SpreadStep extends RunRef {
  readonly step: string;
  readonly createdAtMs: number;
  readonly round: number;
  /** How often the ended run was continued by a retry. */
  readonly reopened: number;
}

/** What shows whether a run still waits for a spread step. */
export type AwaitedSpread = Omit<SpreadStep, "step">;

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

/**
 * Returns the spread step of a run, from the parts that no codec encodes. Undefined if the run has a very long ID, which does not
 * contain all of them.
 */
export function spreadStepIn({ id, parent }: RunView): AwaitedSpread | undefined {
  if (parent?.id === undefined || !id.startsWith(parent.id)) return undefined;
  const found = /^(?:@(\d+))?@(\d+)\.(\d+)\./.exec(id.slice(parent.id.length));
  if (found === null) return undefined;
  const [round, createdAtMs, reopened] = [found[1] ?? 1, found[2], found[3]].map(Number);
  return { ...parent, round, createdAtMs, reopened } as AwaitedSpread;
}

/** Returns the run as which a spread step is stored. */
export function refOfSpread({ workflow, id, step, ...of }: SpreadStep): RunRef {
  const round = `${roundIdOf({ id, round: of.round })}@${of.createdAtMs}.${of.reopened}`;
  return { workflow: spreadOf(workflow), id: childIdOf(round, step) };
}
