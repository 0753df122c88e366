/**
 * How an attempt ended. The queue acts on it alone (docs/outcomes.md):
 * what is counted, when the key runs again, whether the API server is to blame.
 */
export type Outcome =
  /** Finished; counters reset. */
  | { readonly kind: "done" }
  /** Finished; runs again in `afterMs` unless something asks for it earlier. */
  | { readonly kind: "requeueAfter"; readonly afterMs: number }
  /** Finished; a change of a watched object wakes the key. */
  | { readonly kind: "awaitChange" }
  /** We decided on an old version. Not an error: own counter, own ladder. */
  | { readonly kind: "conflict"; readonly error: Error }
  /** Something failed that may succeed later. `retryAfterMs` is the server's wish. */
  | { readonly kind: "retry"; readonly error: Error; readonly retryAfterMs?: number }
  /** The server refuses what we want; tried again slowly, since only a change can help. */
  | { readonly kind: "rejected"; readonly error: Error }
  /** The handler said that trying again cannot help. */
  | { readonly kind: "terminal"; readonly error: Error }
  /** Not tried, or not to the end, for the API server's sake; the attempt is not counted. */
  | { readonly kind: "deferred"; readonly afterMs: number; readonly cause: string }
  /** The reconciled object does not exist any more. */
  | { readonly kind: "gone" }
  /** Ended from outside. */
  | {
      readonly kind: "cancelled";
      readonly cause: "shutdown" | "leaseLost" | "timeout" | "person";
      readonly error?: Error;
    };

export type OutcomeKind = Outcome["kind"];

/** True for outcomes after which nothing is left to do for the requests that the attempt covered. */
export function isFinal(kind: OutcomeKind): boolean {
  switch (kind) {
    case "done":
    case "requeueAfter":
    case "awaitChange":
    case "gone":
    case "terminal":
      return true;
    case "conflict":
    case "retry":
    case "rejected":
    case "deferred":
    case "cancelled":
      return false;
  }
}
