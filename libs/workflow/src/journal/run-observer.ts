import type { EndStatus, StepKind } from "../store/run-record.ts";

/** A recorded step or wait. */
export interface RecordedStep {
  readonly kind: Exclude<StepKind, "sleep" | "now">;
  readonly failed: boolean;
  /** Since its first attempt or the begin of the wait, across executions. */
  readonly durationMs: number;
}

/** An execution that has claimed its run. */
export interface EndedExecution {
  readonly result: "waiting" | "continued" | "blocked" | "lost" | "error" | EndStatus;
  readonly durationMs: number;
}

/** Observes the runs of this process. Callbacks must not throw. */
export interface RunObserver {
  executionEnded(workflow: string, execution: EndedExecution): void;
  recorded(workflow: string, step: RecordedStep): void;
  /** A run was handed back, because only the code of another live worker fits it. */
  handedBack(workflow: string): void;
  /** Ended runs were deleted before the end of their retention, because of their memory limit. */
  dropped(workflow: string, count: number): void;
}
