import { defined } from "@konverge/core";
import { BlockingError, type RunJournal } from "../journal/run-journal.ts";
import { isEndStatus, type RunView, type StepRecord } from "../store/run-record.ts";
import {
  refOfSpread,
  spreadStepOf,
  type SpreadInput,
  type SpreadStep,
} from "../store/spread-step.ts";
import type { Advance } from "./advance.ts";
import { closeOnce, type ChildStarter } from "./await-child.ts";
import type { RunRef } from "../define/run-ref.ts";

/** Starts spread steps. They are stored as runs, which any worker of the workflow executes. */
export interface SpreadStarter extends Pick<
  ChildStarter,
  "start" | "cancel" | "get" | "terminate"
> {
  /** Requests an execution of a spread step that was held back. */
  wake(ref: RunRef): Promise<void>;
}

/** The spread steps that were begun in this execution, by name. The store has noted those of earlier ones. */
export type BegunSpreads = Set<string>;

/**
 * Returns whether a step is, or may be, a spread one. A step that has begun keeps the way in which it was begun when the option
 * changes: its body may be at work elsewhere, or has used some of its attempts.
 */
export function begunAsSpread(
  journal: RunJournal,
  key: string,
  { spread = false }: { readonly spread?: boolean },
): boolean {
  const noted = journal.progressOf(key);
  // Only the notes about spread steps and children have no time.
  return noted === undefined ? spread : noted.attempts + noted.untilMs === 0;
}

/** Returns true if the step is stored as a run. */
export async function hasSpread(
  journal: RunJournal,
  key: string,
  starter: Pick<SpreadStarter, "get">,
): Promise<boolean> {
  return (await starter.get(refOfSpread(spreadStepOf(journal.held, key)))) !== undefined;
}

/**
 * Begins a spread step, or records its outcome. Only an execution of the run records: the order of records is then known to the
 * function that receives them.
 */
export async function awaitSpread(
  journal: RunJournal,
  key: string,
  { starter, begun }: { readonly starter: SpreadStarter; readonly begun: BegunSpreads },
): Promise<Advance> {
  const { held } = journal;
  const spread = spreadStepOf(held, key);
  const ref = refOfSpread(spread);
  const noted = journal.progressOf(key);
  const isNew = noted === undefined && !begun.has(key);
  if (isNew) {
    const cancelled = await journal.throwCancel(key, "step");
    if (cancelled !== undefined) return cancelled;
  }
  const waiting = { waitUntilMs: undefined, spread: ref };
  if (journal.cancelPending) {
    const how = { child: ref, start: starter, onParentClose: "cancel" } as const;
    await closeOnce(journal, key, { ...how, reason: "is cancelled" });
  }
  const isHeldBack = noted?.heldBack === true || journal.pauses.hasResumed;
  if (noted !== undefined && noted.childEnded !== true) {
    if (isHeldBack) await starter.wake(ref);
    return waiting;
  }
  const known = isNew ? await begin(journal, spread, starter) : await starter.get(ref);
  begun.add(key);
  // Its body must not run again, even if the outcome is no longer kept.
  if (known === undefined && !isNew) throw new BlockingError(expiredReason(key));
  if (known !== undefined && !isEndStatus(known.status) && isHeldBack) await starter.wake(ref);
  if (known === undefined || !isEndStatus(known.status)) return waiting;
  const record = outcomeOf(known);
  if (record.error?.code !== "cancelled") return await journal.commit(key, record);
  // Cancelled because the run no longer waits for it: its call never returns.
  if (!journal.cancelPending && !journal.cancelThrown) return waiting;
  const { attempts = 0 } = record;
  return (await journal.throwCancel(key, "step", { attempts }, true)) ?? waiting;
}

/** Returns the run as which the step is stored, if there is one already. */
async function begin(
  journal: RunJournal,
  spread: SpreadStep,
  { start }: SpreadStarter,
): Promise<RunView | undefined> {
  const { workflow, id, run, code } = journal.held;
  const input: SpreadInput = { spread, seq: journal.lastSeq };
  const parent = { workflow, id, step: spread.step, ...defined({ round: run.round }) };
  const version = code ?? run.version;
  const started = await start({ ...refOfSpread(spread), version, input, parent });
  return "status" in started ? started : undefined;
}

/** Returns what an ended spread step records in its run. */
export function outcomeOf({ status, result, error }: RunView): StepRecord {
  if (status === "done") return result as StepRecord;
  const message = error?.message ?? `the spread step is ${status}`;
  return { kind: "step", error: { code: "outcome_unknown", message }, attempts: 1 };
}

function expiredReason(step: string): string {
  return `the outcome of the spread step "${step}" is no longer kept, so it is unknown; cancel this run, or retry it as a new run`;
}
