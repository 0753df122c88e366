import type { Limits } from "@konverge/core";
import type { ClusterAccess } from "../define/cluster-access.ts";
import type { StepContext } from "../define/define-workflow.ts";
import type { Held, RunJournalStore } from "../store/run-journal-store.ts";
import type { LogLine, RunWarning } from "../store/run-record.ts";
import type { CancelRequests } from "./cancel-requests.ts";
import type { PauseState } from "./pause-state.ts";
import type { RunSize } from "./run-limits.ts";
import type { RecordedStep } from "./run-observer.ts";
import type { ExecutionSpan } from "./run-tracing.ts";

export interface RunJournalOptions {
  readonly store: RunJournalStore;
  readonly held: Held;
  /** Aborted when this execution must stop, with the reason. */
  readonly stopped: AbortSignal;
  /**
   * Aborts `stopped` if the lease of this execution has expired: after a suspension, code continues before timers. Called before
   * each body and each API call. Default: no check.
   */
  readonly checkLease?: () => void;
  /** Whether the run is to be paused, so that no further verb begins. Default: read with its records. */
  readonly pauses?: PauseState;
  /** Cancellations of the run since the claim. Default: none. */
  readonly cancels?: CancelRequests;
  /** At which the run is blocked. Default: 1,000 steps and 4 MiB. */
  readonly limits?: Partial<RunSize>;
  /** Largest record or result. Default 1 MiB. */
  readonly recordLimitBytes?: number;
  /** Interval in which a blocked run is rechecked, in ms. Default 1 min. */
  readonly recheckMs?: number;
  /** Monotonic clock, ms. */
  readonly clock: () => number;
  readonly random: () => number;
  /** Waits in place, until the time is over or the signal is aborted. Default: a timer. */
  readonly pause?: (ms: number, signal: AbortSignal) => Promise<void>;
  /** Clusters of the Kubernetes verbs. Default: none; the verbs are rejected. */
  readonly clusters?: ClusterAccess;
  /** Limits of steps, and the object key that they request when the run can continue. Default: none; their use is rejected. */
  readonly permits?: { readonly limits: Limits; readonly key: string };
  /** Called with each warning, once per run. Default: none. */
  readonly onWarning?: (warning: RunWarning) => void;
  /** Called with each new line of the run's log. Default: none. */
  readonly onLog?: (line: LogLine) => void;
  /** The span of this execution. Default: none. */
  readonly trace?: ExecutionSpan;
  /** Called with each record that has a duration. Default: none. */
  readonly onRecorded?: (step: RecordedStep) => void;
  /** Longest time between a heartbeat and its storage, in ms. Default: a third of the timeout, at most 5 s. */
  readonly beatEveryMs?: number;
  /** Called with each heartbeat of a body. For tests. Default: none. */
  readonly onBeat?: (step: string, progress: unknown) => void;
  /**
   * Called before each attempt of a body; an error replaces the body. Returns the body to run. For tests and simulations.
   * Default: the body of the step.
   */
  readonly aroundBody?: (attempt: BodyAttempt, body: StepBody) => StepBody;
}

export type StepBody = (step: StepContext) => unknown;

/** An attempt of a body. */
interface BodyAttempt {
  readonly step: string;
  /** True if the step fails with this attempt. */
  readonly isLast: boolean;
}
