import type { RunView, StepRecord } from "@konverge/workflow";
import { FAILED_CHILD, predict, undoableOf, type Op, type Program } from "./workflow-programs.ts";

type Recorded = StepRecord & { readonly name: string };

/** The state of a run at the end. Times are epoch ms by the clock of Redis. */
export interface RunEvidence {
  readonly id: string;
  readonly program: Program;
  readonly run: RunView | undefined;
  /** The journal in the order of recording. */
  readonly steps: readonly Recorded[];
  /** For all runs, by run and step: tries of bodies, the first nonce that the code saw, the first time it continued after a sleep. */
  readonly tries: Readonly<Record<string, string>>;
  readonly seen: Readonly<Record<string, string>>;
  readonly woke: Readonly<Record<string, string>>;
  /** The steps of this run whose undo was called, in order. */
  readonly undone: readonly string[];
}

export interface RunFindings {
  readonly wrong: readonly string[];
  /** The tries of each step beyond the prediction, including children's steps. */
  readonly again: readonly number[];
  /** The delay after each sleep, in ms. */
  readonly lateMs: readonly number[];
}

/** Compares one run with its prediction and its journal. Numbers are those of the design's invariants. */
export function checkRun(evidence: RunEvidence): RunFindings {
  const { id, program, run, steps } = evidence;
  const records = new Map(steps.map((step) => [step.name, step]));
  const predicted = predict(program, id);
  const wrong: string[] = [];
  const found = (detail: string) => wrong.push(`${id}: ${detail}`);

  const got = program.fails ? run?.error?.message : run?.result;
  const endOf = (sum: number) => (program.fails ? `as planned: ${sum}` : sum);
  if (got !== endOf(predicted.sum)) found(`${String(got)} instead of ${endOf(predicted.sum)}`);
  const journaled = endOf(sumOfRecords(program.ops, records));
  if (got !== journaled) found(`I3: ${String(got)}, journaled ${journaled}`);
  for (const { name, value } of steps) {
    const seen = evidence.seen[`${id}/${name}`];
    const nonce = (value as { readonly nonce?: number } | undefined)?.nonce;
    if (seen !== undefined && seen !== String(nonce)) {
      found(`I3: the code saw ${seen} of "${name}", journaled ${nonce}`);
    }
  }
  if (new Set(steps.map(({ seq }) => seq)).size !== steps.length)
    found("I2: two records have the same position");
  checkOperatorAction(program.ops, records, 0, found);

  const taken = steps.filter(({ name }) => /^signal(#\d+)?$/.test(name)).map(({ value }) => value);
  const wanted = Array.from({ length: predicted.signals }, (_, index) => index + 1);
  if (taken.join() !== wanted.join()) found(`I7: signals ${taken.join()} of ${wanted.join()}`);

  const lateMs: number[] = [];
  for (const { name, kind, untilMs = 0 } of steps) {
    const woke = kind === "sleep" ? evidence.woke[`${id}/${name}`] : undefined;
    if (woke === undefined) continue;
    lateMs.push(Number(woke) - untilMs);
    if (Number(woke) < untilMs) found(`I6: "${name}" resumed ${untilMs - Number(woke)} ms early`);
  }

  const again: number[] = [];
  for (const [step, times] of predicted.tries) {
    const extra = Number(evidence.tries[step] ?? 0) - times;
    if (extra < 0) found(`I4: ${step} has ${-extra} fewer tries than predicted`);
    again.push(Math.max(0, extra));
  }
  checkUndone(evidence, found);
  return { wrong, again, lateMs };
}

function sumOfRecords(ops: readonly Op[], records: ReadonlyMap<string, Recorded>): number {
  let signals = 0;
  const sumOf = (several: readonly Op[]): number =>
    several.reduce((sum, op) => {
      switch (op.kind) {
        case "step":
          return sum + ((records.get(op.name)?.value as { value?: number })?.value ?? Number.NaN);
        case "sleep":
          return sum;
        case "signal": {
          signals += 1;
          const name = signals === 1 ? "signal" : `signal#${signals}`;
          return sum + Number(records.get(name)?.value);
        }
        case "child": {
          const { error, value } = records.get(op.name) ?? {};
          return sum + (error === undefined ? Number(value) : FAILED_CHILD);
        }
        case "all":
          return op.branches.reduce((all, branch) => all + sumOf(branch), sum);
      }
    }, 0);
  return sumOf(ops);
}

/** I2, I6: checks that records follow the order of the program and the end of each sleep. Returns the end, epoch ms. */
function checkOperatorAction(
  ops: readonly Op[],
  records: ReadonlyMap<string, Recorded>,
  fromMs: number,
  found: (detail: string) => void,
): number {
  let beforeMs = fromMs;
  for (const op of ops) {
    if (op.kind === "signal") continue;
    if (op.kind === "all") {
      const start = beforeMs;
      const ends = op.branches.map((branch) => checkOperatorAction(branch, records, start, found));
      beforeMs = Math.max(start, ...ends);
      continue;
    }
    const record = records.get(op.name);
    if (record === undefined) {
      found(`I2: "${op.name}" has no record`);
      continue;
    }
    const { atMs = 0, untilMs = atMs } = record;
    if (atMs < beforeMs) found(`I2: "${op.name}" is recorded before its predecessor`);
    beforeMs = untilMs;
  }
  return beforeMs;
}

/** I8: checks that the recorded steps with an undo were undone in the reverse order of recording. */
function checkUndone(
  { program, steps, undone }: RunEvidence,
  found: (detail: string) => void,
): void {
  const called = [...new Set(undone)];
  const recorded = steps
    .filter(({ kind }) => kind === "undo")
    .map(({ name }) => name.slice("undo:".length));
  if (called.join() !== recorded.join()) {
    found(`I8: undone ${called.join()}, recorded ${recorded.join()}`);
  }
  const order = steps.map(({ name }) => name).filter((name) => recorded.includes(name));
  if (recorded.join() !== order.toReversed().join()) found("I8: undone out of order");
  const planned = program.fails ? undoableOf(program.ops) : [];
  if (called.toSorted().join() !== planned.toSorted().join()) {
    found(`I8: undone ${called.join()}, planned ${planned.join()}`);
  }
}
