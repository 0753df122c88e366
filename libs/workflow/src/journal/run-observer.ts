import type { EndStatus, StepKind } from "../store/run-record.ts";

/** A step or a wait that was recorded. */
export interface RecordedStep {
  readonly kind: Exclude<StepKind, "sleep" | "now">;
  readonly failed: boolean;
  /** From its first try, or from the begin of the wait, over all activations. */
  readonly durationMs: number;
}

/** An activation that took its run. */
export interface EndedExecution {
  readonly result: "waiting" | "blocked" | "lost" | "error" | EndStatus;
  readonly durationMs: number;
}

/** Told what the runs of this process do. May not throw. */
export interface RunObserver {
  executionEnded(workflow: string, execution: EndedExecution): void;
  recorded(workflow: string, step: RecordedStep): void;
}
