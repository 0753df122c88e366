import type { AttemptLease } from "@konverge/queue";
import { spreadOf } from "../define/run-ref.ts";
import { CancelRequests } from "../journal/cancel-requests.ts";
import type { Held, RunJournalStore } from "../store/run-journal-store.ts";
import type { NumberedCancel } from "../store/run-record.ts";
import type { RunQueries } from "../store/run-queries.ts";
import { spreadStepIn, type AwaitedSpread, type SpreadInput } from "../store/spread-step.ts";
import type { ExecutionEnd } from "./run-execution.ts";
import { runSpreadStep, SpreadOverError, type SpreadOptions } from "./run-spread-step.ts";

type Cancels = ReadonlyMap<string, NumberedCancel>;

interface ActiveSpread {
  readonly held: Held;
  /** Missing if it cannot be read. */
  readonly spread: AwaitedSpread | undefined;
  readonly cancels: CancelRequests;
  readonly stop: AbortController;
}

export interface SpreadStepsOptions {
  readonly workflow: string;
  readonly store: Pick<RunJournalStore, "isSpreadAwaited"> & Pick<RunQueries, "cancelling">;
}

/** The spread steps at work in this process. */
export class SpreadSteps {
  readonly #options: SpreadStepsOptions;
  readonly #active = new Set<ActiveSpread>();

  constructor(options: SpreadStepsOptions) {
    this.#options = options;
  }

  get areActive(): boolean {
    return this.#active.size > 0;
  }

  async run(
    held: Held,
    attempt: Pick<AttemptLease, "signal">,
    options: Omit<SpreadOptions, "held" | "stopped" | "cancels">,
  ): Promise<ExecutionEnd> {
    const spread =
      held.unreadable === undefined
        ? (held.run.input as SpreadInput).spread
        : spreadStepIn(held.run);
    const active = { held, spread, cancels: new CancelRequests(), stop: new AbortController() };
    const stopped = AbortSignal.any([attempt.signal, active.stop.signal]);
    this.#active.add(active);
    try {
      return await runSpreadStep({ ...options, held, stopped, cancels: active.cancels });
    } finally {
      this.#active.delete(active);
    }
  }

  /** Aborts the bodies of cancelled runs, and of those that no longer wait for their step. `cancelled` are the runs to cancel. */
  async interrupt(cancelled: Cancels): Promise<void> {
    const { store, workflow } = this.#options;
    const cancels = await store.cancelling(spreadOf(workflow));
    await Promise.all(
      [...this.#active].map((active) => this.#interrupt(active, cancels, cancelled)),
    );
  }

  async #interrupt(
    { held, spread, cancels, stop }: ActiveSpread,
    own: Cancels,
    ofRuns: Cancels,
  ): Promise<void> {
    if (spread === undefined) return;
    const request = own.get(held.id);
    if (request !== undefined) cancels.note(request);
    const ofRun = ofRuns.get(spread.id);
    // The run itself may wait for a slot that this body occupies.
    if (ofRun !== undefined) cancels.note({ ...ofRun, number: held.cancels + 1 });
    if (await this.#options.store.isSpreadAwaited(spread)) return;
    stop.abort(new SpreadOverError(`run ${spread.workflow}/${spread.id} no longer waits for it`));
  }
}
