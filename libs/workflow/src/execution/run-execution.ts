import { defined, ensureError, jsonEquals } from "@konverge/core";
import { ExecutionScope, type Interrupt } from "../journal/execution-scope.ts";
import type { ChildStarter } from "./await-child.ts";
import type { SpreadStarter } from "./await-spread.ts";
import { compensate } from "./compensate.ts";
import { createContext } from "./create-context.ts";
import { enterSlot } from "./enter-slot.ts";
import { OpenChildren } from "./open-children.ts";
import { findUndos, recordUnknownOutcomes } from "./find-undos.ts";
import type { AnyWorkflow } from "../define/define-workflow.ts";
import { failsRun, faultReason } from "./fails-run.ts";
import { findMisfit } from "./find-misfit.ts";
import { startLiveWaits } from "./live-waits.ts";
import type { WakeUps } from "./wake-rounds.ts";
import type { RunJournalOptions } from "../journal/run-journal-options.ts";
import { RunJournal } from "../journal/run-journal.ts";
import { FencedError, type Followers, type Held, type Leave } from "../store/run-journal-store.ts";
import type { EndStatus } from "../store/run-record.ts";
import { codecReason, isCodecError } from "../codec/value-codec.ts";
import { parseWith } from "../define/parse-with.ts";
import { failureOf } from "./step-failed-error.ts";
import { DEFAULT_STALL_TIMEOUT_MS, watchStalls } from "./watch-stalls.ts";

/** The end of an execution. */
export type ExecutionEnd =
  /** The run continues in `afterMs`, or when it is woken. */
  | { readonly kind: "waiting"; readonly afterMs?: number }
  | { readonly kind: "blocked"; readonly reason: string; readonly afterMs: number }
  /** The next execution begins the next round of the run. */
  | { readonly kind: "continued" }
  | { readonly kind: "ended"; readonly status: EndStatus; readonly followers: Followers }
  /** Another execution holds the run, or will; nothing was changed since. */
  | { readonly kind: "lost" }
  /** The store failed. */
  | { readonly kind: "error"; readonly error: Error };

export interface ExecutionOptions extends RunJournalOptions {
  readonly workflow: AnyWorkflow;
  readonly startChild: ChildStarter;
  /** Default: spread steps run in the execution of their run. */
  readonly spread?: SpreadStarter;
  /** Stall timeout of workflows without their own, in ms. Default 10 s. */
  readonly stallTimeoutMs?: number;
  /** Wake-ups of the run during the execution. Default: none. */
  readonly wakeUps?: WakeUps;
  /** Calls once after `ms`, unless the returned function is called. Default: a timer. */
  readonly after?: (ms: number, call: () => void) => () => void;
  /** Called at the begin. For tests. Default: none. */
  readonly onScope?: (scope: ExecutionScope) => void;
}

type Outcome =
  | Interrupt
  | { readonly kind: "returned"; readonly result: unknown }
  | { readonly kind: "threw"; readonly error: Error }
  /** The error is a fault of the code, and the cancellation was requested. */
  | { readonly kind: "threwCancelled" };

/**
 * Executes a workflow function from its start: replays recorded steps, then runs new ones until the function ends or all
 * branches wait.
 */
export async function runExecution(options: ExecutionOptions): Promise<ExecutionEnd> {
  const { store, workflow, held } = options;
  const journal = new RunJournal({ ...options, ...defined({ limits: workflow.limits }) });
  const leave = async (how: Leave) => {
    await journal.log.store();
    const own = { ...held, wakeSeq: journal.wakeSeq };
    // A blocked run may have published less than before: its replay stopped in between.
    if (how.kind === "blocked") return await store.leave(own, how);
    return await journal.output.storeLast((output) => store.leave(own, how, output));
  };
  try {
    const end = await advance(options, journal, leave).catch(endOfError);
    if (end.kind !== "error" || !isCodecError(end.error)) return end;
    // The run continues from its last record once the codec works.
    return await block(journal, leave, codecReason(end.error)).catch(endOfError);
  } finally {
    journal.output.close();
    journal.log.close();
  }
}

function endOfError(thrown: unknown): ExecutionEnd {
  const error = ensureError(thrown);
  return error instanceof FencedError ? { kind: "lost" } : { kind: "error", error };
}

async function advance(
  options: ExecutionOptions,
  journal: RunJournal,
  leave: (how: Leave) => Promise<Followers>,
): Promise<ExecutionEnd> {
  const { workflow, held } = options;
  const unfit = held.unreadable ?? findMisfit(workflow, held);
  if (unfit !== undefined) return await block(journal, leave, unfit);
  const entered = await enterSlot(options.store, workflow, held, () => parseInput(workflow, held));
  switch (entered.kind) {
    case "entered":
      break;
    case "waiting":
      return { kind: "waiting" };
    case "blocked":
      return await block(journal, leave, entered.reason, { quotesError: true });
    case "cancelled":
      return ended("cancelled", await leave({ kind: "cancelled", error: entered.error }));
  }
  const scope = new ExecutionScope(journal.order);
  options.onScope?.(scope);
  if (held.failing !== undefined) scope.stopWork();
  const children = new OpenChildren(journal, options.startChild);
  const outcome = await execute(options, { journal, scope, children });
  // The next holder of the run does not wait for this execution; records of running bodies are rejected.
  if (outcome.kind === "lost") return outcome;
  await rest(journal, scope, outcome);
  // After a failed call of the store this execution does not know what to undo.
  if (scope.failure !== undefined && outcome.kind !== "returned") return scope.failure;
  if (outcome.kind === "error") return outcome;
  if (outcome.kind === "blocked") {
    return await block(journal, leave, outcome.reason, outcome);
  }
  let { failing } = held;
  if (failing === undefined) {
    if (outcome.kind === "waiting") return await suspend(journal, leave, outcome);
    // The function has ended, and its waiting steps with it.
    for (const place of journal.places.values()) place.leave();
    if (outcome.kind === "continued" || outcome.kind === "returned") {
      const open = await children.cancel();
      const waits = open.filter(({ spread }) => spread !== undefined);
      // No body is at work when the round has ended.
      if (waits.length > 0) return await suspend(journal, leave, { kind: "waiting", waits });
    }
    if (outcome.kind === "continued") {
      await leave(outcome);
      return { kind: "continued" };
    }
    if (outcome.kind === "returned") {
      return ended("done", await leave({ kind: "done", result: outcome.result }));
    }
    failing =
      outcome.kind === "cancelled" || outcome.kind === "threwCancelled"
        ? { status: "cancelled", error: journal.cancelFailure() }
        : {
            status: journal.cancelThrown ? "cancelled" : "failed",
            error: failureOf(outcome.error, (text) => journal.secrets.scrub(text)),
          };
    await recordUnknownOutcomes(journal);
  }
  if (held.failing === undefined && (children.areOpen || hasUndos(journal))) {
    await leave({ kind: "compensating", failing });
  }
  if (journal.isPausing) return await suspend(journal, leave, { kind: "waiting" });
  // Their steps are undone before those of this run, which they may use.
  const open = await children.cancel();
  if (open.length > 0) return await suspend(journal, leave, { kind: "waiting", waits: open });
  await children.recordDone();
  const found = findUndos(journal);
  if (found.kind === "missing") return await block(journal, leave, withoutUndo(found.steps));
  const waiting = await compensate(journal, found.undos);
  switch (waiting?.kind) {
    case "waiting":
      return await suspend(journal, leave, waiting);
    case "blocked":
      return await block(journal, leave, waiting.reason, waiting);
    case "lost":
    case "error":
      return waiting;
    case undefined:
      return ended(failing.status, await leave({ kind: failing.status, error: failing.error }));
  }
}

async function execute(
  options: ExecutionOptions,
  {
    journal,
    scope,
    children,
  }: { journal: RunJournal; scope: ExecutionScope; children: OpenChildren },
): Promise<Outcome> {
  const { store, workflow, held, startChild, stopped } = options;
  const isStrict = workflow.strict;
  const { spread } = options;
  const w = createContext({
    workflow,
    scope,
    journal,
    startChild,
    children,
    isStrict,
    ...defined({ spread }),
  });
  const { wakeUps, after } = options;
  const endLiveWaits = startLiveWaits({ scope, journal, ...defined({ wakeUps, after }) });
  let endWatch = (): void => undefined;
  const run = async (): Promise<Outcome> => {
    let input: unknown;
    try {
      input = parseInput(workflow, held);
    } catch (thrown) {
      const error = ensureError(thrown);
      const isNew = held.run.round === undefined && held.steps.size === 0;
      if (isNew) return { kind: "threw", error };
      // A failure here would undo nothing, because only the function shows which steps have an undo. An input that the run has
      // given itself is no mistake of a caller.
      const reason = `${error.message}; earlier code accepted it; change the schema to accept it, then the run resumes`;
      return { kind: "blocked", reason, quotesError: true };
    }
    const isKnown = held.parsedInput !== undefined || input === undefined;
    if (!isKnown && !jsonEquals(input, held.run.input)) {
      input = await store.keepInput(held, input);
    }
    const timeoutMs = workflow.stallTimeoutMs ?? options.stallTimeoutMs ?? DEFAULT_STALL_TIMEOUT_MS;
    const offersAllUndos = () => findUndos(journal).kind === "found";
    endWatch = watchStalls({ scope, journal, timeoutMs, offersAllUndos });
    try {
      const result = await workflow.run(w, input as never);
      journal.assertFits("the run", { kind: "step", value: result });
      return { kind: "returned", result };
    } catch (thrown) {
      return outcomeOf(ensureError(thrown), journal);
    }
  };
  const stop = () => void scope.interrupt({ kind: "lost" });
  stopped.addEventListener("abort", stop, { once: true });
  if (stopped.aborted) stop();
  try {
    return await Promise.race([scope.interrupted, run()]);
  } finally {
    endWatch();
    endLiveWaits();
    stopped.removeEventListener("abort", stop);
  }
}

/** Returns the effect of an error of the function. Only failures fail the run: a bug must not undo what was done. */
function outcomeOf(error: Error, { held, cancelPending, secrets }: RunJournal): Outcome {
  if (held.failing !== undefined || failsRun(error)) return { kind: "threw", error };
  if (cancelPending) return { kind: "threwCancelled" };
  const failure = failureOf(error, (text) => secrets.scrub(text));
  return { kind: "blocked", reason: faultReason(failure), error: failure };
}

/**
 * Parses the input in the first execution, because a start by name has no schema. Later ones get what it stored, since a
 * default or a transform may give another value each time.
 */
export function parseInput({ name, input }: AnyWorkflow, { run, parsedInput }: Held): unknown {
  if (parsedInput !== undefined) return parsedInput;
  if (input === undefined) return run.input;
  return parseWith(input, run.input, `the input of "${name}"`);
}

/** Ends the work of verbs. The branches of a function that failed first receive all records, because they offer undos. */
async function rest(journal: RunJournal, scope: ExecutionScope, { kind }: Outcome): Promise<void> {
  if (kind === "threw" || kind === "threwCancelled" || journal.held.failing !== undefined) {
    scope.stopWork();
    await scope.drained();
    await journal.order.rest();
  }
  scope.close();
  await scope.drained();
}

function hasUndos(journal: RunJournal): boolean {
  const found = findUndos(journal);
  return found.kind === "missing" || found.undos.length > 0;
}

function withoutUndo(steps: readonly string[]): string {
  const names = steps.map((step) => `"${step}"`).join(", ");
  return `the run failed and must undo ${names}, which the code no longer does; restore the step with its undo, then the run resumes`;
}

async function block(
  journal: RunJournal,
  leave: (how: Leave) => Promise<Followers>,
  reason: string,
  {
    error,
    quotesError,
    afterMs = journal.recheckMs,
  }: Pick<Extract<Interrupt, { kind: "blocked" }>, "error" | "quotesError" | "afterMs"> = {},
): Promise<ExecutionEnd> {
  const untilMs = journal.nowMs() + afterMs;
  await leave({ kind: "blocked", reason, ...defined({ error, quotesError }), untilMs });
  return { kind: "blocked", reason, afterMs };
}

async function suspend(
  journal: RunJournal,
  leave: (how: Leave) => Promise<Followers>,
  waiting: Extract<Leave, { kind: "waiting" }>,
): Promise<ExecutionEnd> {
  // If the run was resumed meanwhile, it continues at once.
  const untilMs = journal.pauses.wasPausing ? journal.nowMs() : waiting.untilMs;
  await leave({ ...waiting, ...defined({ untilMs }) });
  if (untilMs === undefined) return { kind: "waiting" };
  return { kind: "waiting", afterMs: Math.max(0, untilMs - journal.nowMs()) };
}

function ended(status: EndStatus, followers: Followers): ExecutionEnd {
  return { kind: "ended", status, followers };
}
