/**
 * The result of an attempt. The queue derives everything else from it (docs/outcomes.md):
 * the counters, the next start of the key, and whether the API server is at fault.
 */
export type Outcome =
  /** Finished; counters reset. */
  | { readonly kind: "done" }
  /** Finished; runs again in `afterMs`, or earlier if requested. */
  | { readonly kind: "requeueAfter"; readonly afterMs: number }
  /** Finished; a change of a watched object starts the next attempt. */
  | { readonly kind: "awaitChange" }
  /** Planned; users must approve the plan before an attempt makes its changes. */
  | { readonly kind: "awaitApproval" }
  /** Outdated resourceVersion. Separate counter and backoff. */
  | { readonly kind: "conflict"; readonly error: Error }
  /** Failed, but may succeed later. `retryAfterMs` is the delay that the server requested. */
  | { readonly kind: "retry"; readonly error: Error; readonly retryAfterMs?: number }
  /** The server rejected the request. Retried slowly, since only a change can help. */
  | { readonly kind: "rejected"; readonly error: Error }
  /** The handler threw a TerminalError. */
  | { readonly kind: "terminal"; readonly error: Error }
  /** Not started, or not completed, to protect the API server. The attempt is not counted. */
  | {
      readonly kind: "deferred";
      readonly afterMs: number;
      readonly cause: string;
      /** True if a new request ends the wait, which does not protect the API server. */
      readonly endsOnRequest?: boolean;
    }
  /** The reconciled object does not exist. */
  | { readonly kind: "gone" }
  /** Cancelled by a shutdown, a lost lease or a user. */
  | {
      readonly kind: "cancelled";
      readonly cause: "shutdown" | "leaseLost" | "handedBack" | "person";
      readonly error?: Error;
    };

/** All outcomes, in the order of the API's schema. */
export const OUTCOME_KINDS = [
  "done",
  "requeueAfter",
  "awaitChange",
  "awaitApproval",
  "conflict",
  "retry",
  "rejected",
  "terminal",
  "deferred",
  "gone",
  "cancelled",
] as const;

export type OutcomeKind = (typeof OUTCOME_KINDS)[number];

interface Meaning {
  readonly isFinal: boolean;
  readonly endedWell: boolean;
  readonly isSuccess: boolean;
}

const SUCCESS: Meaning = { isFinal: true, endedWell: true, isSuccess: true };
const OPEN: Meaning = { isFinal: false, endedWell: false, isSuccess: false };

// Keyed by the union and checked against the list: a difference between the two breaks the build.
const MEANINGS: Readonly<Record<Outcome["kind"], Meaning>> = {
  done: SUCCESS,
  requeueAfter: SUCCESS,
  awaitChange: SUCCESS,
  awaitApproval: { isFinal: true, endedWell: true, isSuccess: false },
  gone: { isFinal: true, endedWell: true, isSuccess: false },
  terminal: { isFinal: true, endedWell: false, isSuccess: false },
  conflict: OPEN,
  retry: OPEN,
  rejected: OPEN,
  deferred: OPEN,
  cancelled: OPEN,
} satisfies Record<OutcomeKind, Meaning>;

/** Returns true for outcomes that finish the requests of the attempt. */
export function isFinal(outcome: string | undefined): boolean {
  return meaningOf(outcome).isFinal;
}

/** Returns true for outcomes without a problem: the handler succeeded, or the object does not exist. */
export function endedWell(outcome: string | undefined): boolean {
  return meaningOf(outcome).endedWell;
}

/** Returns true if the handler ran and returned a valid result. */
export function handlerSucceeded(outcome: string | undefined): boolean {
  return meaningOf(outcome).isSuccess;
}

/** Other outcomes of records, such as `lost`, and missing ones count as open. */
function meaningOf(outcome: string | undefined): Meaning {
  return outcome !== undefined && Object.hasOwn(MEANINGS, outcome)
    ? MEANINGS[outcome as OutcomeKind]
    : OPEN;
}
