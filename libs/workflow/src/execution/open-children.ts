import type { RunRef } from "../define/run-ref.ts";
import type { RunJournal } from "../journal/run-journal.ts";
import { isEndStatus, type RunWait } from "../store/run-record.ts";
import { cancelOnce, isCancelNoted, type ChildStarter } from "./await-child.ts";

/** The children that the function of one execution has called, and that end with their parent. */
export class OpenChildren {
  readonly #journal: RunJournal;
  readonly #starter: ChildStarter;
  readonly #called = new Map<string, RunRef>();

  constructor(journal: RunJournal, starter: ChildStarter) {
    this.#journal = journal;
    this.#starter = starter;
  }

  add(step: string, child: RunRef): void {
    this.#called.set(step, child);
  }

  /** True if a child has no record. It may not have been started. */
  get areOpen(): boolean {
    return this.#unrecorded().length > 0;
  }

  /** Cancels the children without a record. Returns those that have not ended. */
  async cancel(): Promise<readonly RunWait[]> {
    const open: RunWait[] = [];
    if (this.areOpen) await this.#journal.assertHeld();
    for (const [step, child] of this.#unrecorded()) {
      if (await this.#cancel(step, child)) open.push({ step, kind: "child", child });
    }
    return open;
  }

  /** Returns false if the child has ended or was not started. Asks once: then the end of the child is noted in the journal. */
  async #cancel(step: string, child: RunRef): Promise<boolean> {
    const journal = this.#journal;
    const start = this.#starter;
    const noted = journal.progressOf(step);
    if (noted !== undefined && noted.childEnded !== true && isCancelNoted(journal, step)) {
      return true;
    }
    const run = await start.get(child);
    if (run === undefined || isEndStatus(run.status)) return false;
    await cancelOnce(journal, step, { child, start, reason: "has ended" });
    return true;
  }

  /** True for a child without a record that is not abandoned, and that this run has not cancelled. */
  mustLeave(step: string): boolean {
    const journal = this.#journal;
    const isOpen = this.#called.has(step) && journal.get(step) === undefined;
    return isOpen && !isCancelNoted(journal, step);
  }

  /** Cancels a child whose branch has lost a race; its end is not awaited. */
  async leave(step: string): Promise<void> {
    const child = this.#called.get(step);
    if (child === undefined) return;
    const start = this.#starter;
    const reason = "has ended its branch of a race";
    // Noted in any case, so that no later execution asks again.
    await cancelOnce(this.#journal, step, { child, start, reason });
  }

  /** Records the results of children that were done before they could be cancelled, so that they are undone. */
  async recordDone(): Promise<void> {
    for (const [step, child] of this.#unrecorded()) {
      if (!this.#journal.undos.has(step)) continue;
      const run = await this.#starter.get(child);
      if (run?.status !== "done") continue;
      await this.#journal.commit(step, { kind: "child", value: run.result, child });
    }
  }

  #unrecorded(): readonly (readonly [string, RunRef])[] {
    return [...this.#called].filter(([step]) => this.#journal.get(step) === undefined);
  }
}
