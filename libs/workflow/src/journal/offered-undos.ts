import type { StepOptions } from "../define/define-workflow.ts";

/** How a step or child is undone. */
export type UndoOptions = StepOptions<never>;

export interface OfferedUndo {
  readonly kind: "step" | "child";
  readonly options: UndoOptions;
  /** True if the function called the verb before it received a record that earlier executions do not have. */
  readonly isReplayed: boolean;
}

/** The undos that the function of one execution has offered, by the name of the step. */
export class OfferedUndos {
  readonly #offered = new Map<string, OfferedUndo>();

  [Symbol.iterator](): Iterator<[string, OfferedUndo]> {
    return this.#offered.entries();
  }

  /** Call it before the verb begins, so that its record states that it has an undo. */
  offer(step: string, undo: OfferedUndo): void {
    if (undo.options.undo !== undefined) this.#offered.set(step, undo);
  }

  get(step: string): OfferedUndo | undefined {
    return this.#offered.get(step);
  }

  has(step: string): boolean {
    return this.#offered.has(step);
  }
}
