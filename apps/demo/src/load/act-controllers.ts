/** The controllers of one act, running as processes. */
export interface ActControllers {
  /** Process ids, for the progress line. */
  readonly pids: readonly number[];
  /** Prefix of their user agent in the API server's audit log. */
  readonly agent: string;
  /** URLs of the `/metrics` of their processes. */
  readonly metricsUrls: readonly string[];
  /** Ends what `totals` counts: the last call of an act that needs them. */
  totals(): Promise<ActTotals>;
  stop(): Promise<void>;
}

/** What the controllers counted themselves. */
export interface ActTotals {
  readonly reconciles: number;
  readonly jobRetries: number;
  /** Writes that were dropped after the last retry. */
  readonly gaveUp: number;
  /** Used only if the API server's audit log cannot be read. */
  readonly calls: ApiCalls;
}

/** API calls without watches, Leases and Events. */
export interface ApiCalls {
  readonly calls: number;
  /** Successful creates, updates, patches and deletes. */
  readonly writes: number;
  /** Writes that the API server rejected because of an earlier write. */
  readonly conflicts: number;
}
