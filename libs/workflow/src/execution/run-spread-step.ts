import { defined, ensureError } from "@konverge/core";
import { codecReason, isCodecError } from "../codec/value-codec.ts";
import type { RunRef } from "../define/run-ref.ts";
import { ExecutionScope } from "../journal/execution-scope.ts";
import { RunJournal } from "../journal/run-journal.ts";
import {
  FencedError,
  type Followers,
  type Leave,
  type RunJournalStore,
  type SpreadState,
} from "../store/run-journal-store.ts";
import type { EndStatus, RunView } from "../store/run-record.ts";
import type { RunHistory } from "../store/run-history.ts";
import type { RunQueries } from "../store/run-queries.ts";
import { spreadStepIn, type SpreadInput, type SpreadStep } from "../store/spread-step.ts";
import { findMisfit } from "./find-misfit.ts";
import { findStep } from "./find-step.ts";
import { heldOf } from "./replay-history.ts";
import type { ExecutionEnd, ExecutionOptions } from "./run-execution.ts";
import { runStep } from "./run-step.ts";
import { DEFAULT_STALL_TIMEOUT_MS } from "./watch-stalls.ts";

/** Delay before a step that is held back looks again whether its run waits for it, in ms. The run wakes it earlier. */
const HELD_RECHECK_MS = 120_000;
const RECHECK_MS = 60_000;

/** The reason of the abort when the run no longer waits for the step. */
export class SpreadOverError extends Error {
  override readonly name = "SpreadOverError";
}

export interface SpreadOptions extends Omit<
  ExecutionOptions,
  "store" | "startChild" | "spread" | "wakeUps" | "after" | "pauses" | "onWarning" | "onRecorded"
> {
  readonly store: RunJournalStore & Pick<RunQueries, "get" | "history">;
  /** Requests an execution of the run that waits for the step. */
  readonly wake: (run: RunRef) => Promise<void>;
  readonly onError: (error: Error) => void;
}

/**
 * Executes one try of a spread step: replays the function of its run up to the call, and runs the body. `held` is the run as
 * which the step is stored. Its result is the outcome, which an execution of the waiting run records.
 */
export async function runSpreadStep(options: SpreadOptions): Promise<ExecutionEnd> {
  return await new SpreadExecution(options).run();
}

class SpreadExecution {
  readonly #options: SpreadOptions;
  readonly #claimedAtMs: number;

  constructor(options: SpreadOptions) {
    this.#options = options;
    this.#claimedAtMs = options.clock();
  }

  async run(): Promise<ExecutionEnd> {
    const { stopped } = this.#options;
    const end = await this.#execute().catch((error: unknown) => this.#endOf(ensureError(error)));
    // The last lines of a body whose run has ended.
    if (end.kind !== "lost" || !(stopped.reason instanceof SpreadOverError)) return end;
    return await this.#endOver().catch((error: unknown) => this.#endOf(ensureError(error)));
  }

  async #endOf(error: Error): Promise<ExecutionEnd> {
    if (error instanceof FencedError || this.#options.stopped.aborted) return { kind: "lost" };
    if (isCodecError(error)) return await this.#block(codecReason(error));
    return { kind: "error", error };
  }

  async #execute(): Promise<ExecutionEnd> {
    const { store, workflow, held } = this.#options;
    if (held.unreadable !== undefined) return await this.#blockUnreadable(held.unreadable);
    const { spread, seq } = held.run.input as SpreadInput;
    const [history, run] = await Promise.all([store.history(spread), store.get(spread)]);
    if (history === undefined || run === undefined) return await this.#endOver();
    const unfit = findMisfit(workflow, held) ?? findMisfit(workflow, heldOf(history));
    // An execution of the run is blocked with the reason, until a worker has fitting code.
    if (unfit !== undefined) return await this.#holdBack(spread);
    // The run cancels the step before it undoes others.
    if (history.failing !== undefined && held.cancels === 0) return await this.#wait();
    const journal = this.#openJournal(spread, { history, run, seq });
    try {
      return await this.#try(spread, journal);
    } finally {
      await journal.log.store();
      journal.log.close();
      journal.output.close();
    }
  }

  async #try(spread: SpreadStep, journal: RunJournal): Promise<ExecutionEnd> {
    const { store, workflow, stallTimeoutMs = DEFAULT_STALL_TIMEOUT_MS, onScope } = this.#options;
    const scope = new ExecutionScope(journal.order);
    onScope?.(scope);
    // Its other verbs only return what is recorded.
    scope.stopWork();
    const timeoutMs = workflow.stallTimeoutMs ?? stallTimeoutMs;
    const called = await findStep({ workflow, scope, journal, step: spread.step, timeoutMs });
    scope.close();
    if (called === undefined) return await this.#reportMissing(spread);
    let state: SpreadState | undefined;
    const advanced = await runStep(journal, spread.step, "step", called.body, {
      ...called.options,
      // A further try begins in another execution, which looks again whether the run is paused.
      isOver: () => state === "active",
      mayBegin: async () => {
        state = await store.admitSpread(spread);
        return state === "active";
      },
    });
    await journal.log.store();
    if (!("waitUntilMs" in advanced)) return await this.#end({ kind: "done", result: advanced });
    return state === "over" ? await this.#endOver() : await this.#wait(advanced.waitUntilMs);
  }

  /** The journal of the run until the step was called. What it writes goes to the step, or is dropped. */
  #openJournal(
    spread: SpreadStep,
    {
      history,
      run,
      seq: last,
    }: { readonly history: RunHistory; readonly run: RunView; readonly seq: number },
  ): RunJournal {
    const { progress, died, cancels, epoch, nowMs, run: own } = this.#options.held;
    const { failing: _failing, steps, ...recorded } = heldOf(history);
    return new RunJournal({
      ...this.#options,
      store: this.#storeFor(spread),
      held: {
        ...recorded,
        progress,
        died,
        cancels,
        epoch,
        nowMs,
        run: { ...run, ...defined({ cancel: own.cancel }) },
        steps: new Map([...steps].filter(([, { seq = 0 }]) => seq <= last)),
        // Lines of the function are logged by the executions of the run.
        logged: Infinity,
      },
    });
  }

  #storeFor(spread: SpreadStep): RunJournalStore {
    const { store, held } = this.#options;
    return {
      ...store,
      commit: async (_held, _step, record) => record,
      note: async (_held, step, progress) => await store.note(held, step, progress),
      async holds() {
        const both = await Promise.all([store.holds(held), store.isSpreadAwaited(spread)]);
        return both.every((isHeld) => isHeld);
      },
      async appendLog(_held, lines) {
        const own = lines.filter(({ step }) => step !== undefined);
        if (own.length > 0) await store.appendSpreadLog(spread, own);
      },
      publish: async () => undefined,
      relabel: async () => undefined,
    };
  }

  async #holdBack(spread: SpreadStep): Promise<ExecutionEnd> {
    const { store, wake } = this.#options;
    if ((await store.admitSpread(spread, "always")) === "over") return await this.#endOver();
    const end = await this.#wait();
    await wake(spread);
    return end;
  }

  /** The code of the run has changed, or differs between workers with the same version. */
  async #reportMissing(spread: SpreadStep): Promise<ExecutionEnd> {
    const { store, onError } = this.#options;
    if (!(await store.isSpreadAwaited(spread))) return await this.#endOver();
    const { workflow, id, step } = spread;
    const reason = `the code of this worker does not call the spread step "${step}" of run ${workflow}/${id}`;
    onError(new Error(`${reason}; deploy the same code to all workers, or increase the version`));
    return await this.#block(reason);
  }

  /** Its input cannot be decoded, so another field shows whether the run still waits for it. */
  async #blockUnreadable(reason: string): Promise<ExecutionEnd> {
    const { store, held } = this.#options;
    const spread = spreadStepIn(held.run);
    if (spread !== undefined && !(await store.isSpreadAwaited(spread)))
      return await this.#endOver();
    return await this.#block(reason);
  }

  async #block(reason: string): Promise<ExecutionEnd> {
    const { recheckMs: afterMs = RECHECK_MS } = this.#options;
    await this.#leave({ kind: "blocked", reason, untilMs: this.#nowMs() + afterMs });
    return { kind: "blocked", reason, afterMs };
  }

  async #wait(untilMs: number = this.#nowMs() + HELD_RECHECK_MS): Promise<ExecutionEnd> {
    await this.#leave({ kind: "waiting", untilMs });
    return { kind: "waiting", afterMs: Math.max(0, untilMs - this.#nowMs()) };
  }

  async #endOver(): Promise<ExecutionEnd> {
    const message = "the run no longer waits for the step";
    return await this.#end({ kind: "cancelled", error: { code: "cancelled", message } });
  }

  async #end(how: Extract<Leave, { kind: EndStatus }>): Promise<ExecutionEnd> {
    return { kind: "ended", status: how.kind, followers: await this.#leave(how) };
  }

  async #leave(how: Leave): Promise<Followers> {
    const { store, held } = this.#options;
    return await store.leave(held, how);
  }

  /** The store's clock, or slightly before it, epoch ms. */
  #nowMs(): number {
    const { held, clock } = this.#options;
    return Math.floor(held.nowMs + clock() - this.#claimedAtMs);
  }
}
