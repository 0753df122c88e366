/** Bytes of Redis per item, as measured in docs/benchmarks.md and used in docs/production.md. */
export const BYTES_PER = {
  idleKey: 1 * 1_024,
  waitingKey: 2 * 1_024,
  run: 3.9 * 1_024,
} as const;

export interface CapacityCounts {
  /** All keys, including waiting ones. */
  readonly keys: number;
  readonly waiting: number;
  readonly liveRuns: number;
  readonly endedRuns: number;
}

export interface CapacityEstimate {
  readonly keysBytes: number;
  readonly waitingBytes: number;
  readonly runsBytes: number;
  /** The limit of the records, which they reach. */
  readonly recordsBytes: number;
  readonly totalBytes: number;
}

/** Estimates the memory of a cluster's data in Redis with the formula of docs/production.md. Runs with large values need more. */
export function estimateMemory(
  { keys, waiting, liveRuns, endedRuns }: CapacityCounts,
  recordsBytes: number,
): CapacityEstimate {
  const keysBytes = (keys - waiting) * BYTES_PER.idleKey;
  const waitingBytes = waiting * BYTES_PER.waitingKey;
  const runsBytes = (liveRuns + endedRuns) * BYTES_PER.run;
  const totalBytes = keysBytes + waitingBytes + runsBytes + recordsBytes;
  return { keysBytes, waitingBytes, runsBytes, recordsBytes, totalBytes };
}
