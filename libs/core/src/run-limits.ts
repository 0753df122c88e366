/** The limits of a run's records. */
export interface RunLimits {
  /** Recorded steps, up to 100,000. Default 1,000. */
  readonly steps?: number;
  /** Records and their names as JSON, up to 64 MiB. Default 4 MiB. */
  readonly bytes?: number;
}

/** The highest limits that a workflow or an operator may set. */
export const MAX_RUN_LIMITS: Required<RunLimits> = { steps: 100_000, bytes: 64 * 1_024 * 1_024 };
