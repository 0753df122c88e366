import { ensureError, KonvergeError, type BreakerMode } from "@konverge/core";

/** A change of the breaker, as it is stored and logged: with the evidence that caused it. */
export interface Transition {
  readonly atMs: number;
  readonly from: BreakerMode;
  readonly to: BreakerMode;
  /** consecutive, failedShare, slow or strained (calls), probe, timer, or operatorAction. */
  readonly reason: string;
  readonly generation: number;
  /** The worker whose report caused it. */
  readonly worker?: string;
  readonly openMs?: number;
  readonly calls?: number;
  readonly failed?: number;
  readonly slow?: number;
  readonly throttled?: number;
  readonly consecutive?: number;
  readonly failingWorkers?: number;
  readonly liveWorkers?: number;
  /** Author of an operator action. */
  readonly by?: string;
  readonly operatorReason?: string;
}

/** @throws KonvergeError `internal` if the text is not JSON */
export function parseTransition(text: string): Transition {
  try {
    return JSON.parse(text) as Transition;
  } catch (error) {
    throw new KonvergeError("internal", "a stored transition of the guard is not JSON", {
      cause: ensureError(error),
    });
  }
}
