/** Decides which attempts of a process run at the same time. */
export interface Quarantine {
  /** Resolves when the attempt may run; undefined if it may at once. Ends the wait when `signal` is aborted. */
  enter(isSuspect: boolean, signal: AbortSignal): Promise<void> | undefined;
  /** Must follow each `enter`. */
  leave(isSuspect: boolean): void;
}
