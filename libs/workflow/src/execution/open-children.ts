import type { ParentClosePolicy } from "../define/define-workflow.ts";
import type { RunRef } from "../define/run-ref.ts";
import type { RunJournal } from "../journal/run-journal.ts";
import { isEndStatus, type RunWait } from "../store/run-record.ts";
import { refOfSpread, spreadStepOf } from "../store/spread-step.ts";
import { closeOnce, isCloseNoted, type ChildStarter } from "./await-child.ts";
import { outcomeOf } from "./await-spread.ts";

/** A child that does not outlive its parent, or a spread step. */
interface CalledChild {
  readonly ref: RunRef;
  readonly onParentClose: ParentClosePolicy;
}

/** The children and spread steps that the function of one execution has called, and that end with their parent. */
export class OpenChildren {
  readonly #journal: RunJournal;
  readonly #starter: ChildStarter;
  readonly #called = new Map<string, CalledChild>();
  readonly #spread = new Set<string>();

  constructor(journal: RunJournal, starter: ChildStarter) {
    this.#journal = journal;
    this.#starter = starter;
  }

  add(step: string, child: CalledChild): void {
    this.#called.set(step, child);
  }

  addSpread(step: string): void {
    this.#spread.add(step);
    const ref = refOfSpread(spreadStepOf(this.#journal.held, step));
    this.add(step, { ref, onParentClose: "cancel" });
  }

  /** True if a child has no record. It may not have been started. */
  get areOpen(): boolean {
    return this.#unrecorded().length > 0;
  }

  /** Cancels or terminates the children without a record. Returns those that have not ended. */
  async cancel(): Promise<readonly RunWait[]> {
    const open: RunWait[] = [];
    if (this.areOpen) await this.#journal.assertHeld();
    for (const [step, child] of this.#unrecorded()) {
      if (!(await this.#close(step, child))) continue;
      const { ref } = child;
      const isSpread = this.#spread.has(step);
      open.push(
        isSpread ? { step, kind: "step", spread: ref } : { step, kind: "child", child: ref },
      );
    }
    return open;
  }

  /** Returns false if the child has ended or was not started. Asks once: then the end of the child is noted in the journal. */
  async #close(step: string, { ref, onParentClose }: CalledChild): Promise<boolean> {
    const journal = this.#journal;
    const start = this.#starter;
    const noted = journal.progressOf(step);
    if (noted !== undefined && noted.childEnded !== true && isCloseNoted(journal, step)) {
      return true;
    }
    const run = await start.get(ref);
    if (run === undefined || isEndStatus(run.status)) return false;
    await closeOnce(journal, step, { child: ref, start, onParentClose, reason: "has ended" });
    return onParentClose !== "terminate";
  }

  /** True for a child without a record that is not abandoned, and that this run has not cancelled. */
  mustLeave(step: string): boolean {
    const journal = this.#journal;
    const isOpen = this.#called.has(step) && journal.get(step) === undefined;
    return isOpen && !isCloseNoted(journal, step);
  }

  /** Cancels or terminates a child whose branch has lost a race; its end is not awaited. */
  async leave(step: string): Promise<void> {
    const child = this.#called.get(step);
    if (child === undefined) return;
    const start = this.#starter;
    const reason = "has ended its branch of a race";
    // Noted in any case, so that no later execution asks again.
    const { ref, onParentClose } = child;
    await closeOnce(this.#journal, step, { child: ref, start, onParentClose, reason });
  }

  /** Records the results of children that were done before they could be cancelled, and of spread steps, so that they are undone. */
  async recordDone(): Promise<void> {
    for (const [step, { ref }] of this.#unrecorded()) {
      if (!this.#journal.undos.has(step)) continue;
      const run = await this.#starter.get(ref);
      if (run !== undefined && this.#spread.has(step)) {
        await this.#journal.commit(step, outcomeOf(run));
      } else if (run?.status === "done") {
        await this.#journal.commit(step, { kind: "child", value: run.result, child: ref });
      }
    }
  }

  #unrecorded(): readonly (readonly [string, CalledChild])[] {
    return [...this.#called].filter(([step]) => this.#journal.get(step) === undefined);
  }
}
