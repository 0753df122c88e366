import type { KeyPhase, OutcomeKind, Trigger } from "@konverge/core";
import type { Pause } from "./pause.ts";

/** What Redis knows about a key. */
export interface KeyState {
  readonly key: string;
  readonly phase: KeyPhase;
  /** Number of the last request, of the last one an attempt covered, and of the last one that is finished. */
  readonly requested: number;
  readonly covered: number;
  readonly finished: number;
  readonly epoch: number;
  /** In a row, since the last success. */
  readonly failures: number;
  readonly conflicts: number;
  readonly lastOutcome?: OutcomeKind;
  /** ISO 8601; the next start if one is planned (backoff or timer). */
  readonly nextAt?: string;
  /** The narrowest pause that holds it back. While an attempt runs, or the key is dead, the phase says that instead. */
  readonly paused?: Pause;
  /** Since when it is dead (ISO 8601), and of what. */
  readonly deadLetter?: {
    readonly since: string;
    readonly error?: { readonly code: string; readonly message: string };
  };
  /** People only: the latest triggers, oldest first, at most 20. */
  readonly triggers: readonly Trigger[];
}
