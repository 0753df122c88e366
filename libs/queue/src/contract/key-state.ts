import type { KeyPhase, OutcomeKind, Trigger } from "@konverge/core";
import type { Pause } from "./pause.ts";

/** The state of a key in Redis. */
export interface KeyState {
  readonly key: string;
  readonly phase: KeyPhase;
  /** Numbers of the last request, the last one that an attempt covered, and the last finished one. */
  readonly requested: number;
  readonly covered: number;
  readonly finished: number;
  readonly epoch: number;
  /** Consecutive, since the last success. */
  readonly failures: number;
  readonly conflicts: number;
  readonly lastOutcome?: OutcomeKind;
  /** ISO 8601; the next start if one is planned (backoff or timer). */
  readonly nextAt?: string;
  /** The narrowest pause of the key. `phase` is `running` or `deadLettered` even if the key is paused. */
  readonly paused?: Pause;
  /** Start (ISO 8601) and cause of the dead-lettering. */
  readonly deadLetter?: {
    readonly since: string;
    readonly error?: { readonly code: string; readonly message: string };
  };
  /** For display: of the waiting requests, else of the running attempt, oldest first, at most 20. Empty for a key at rest. */
  readonly triggers: readonly Trigger[];
}
