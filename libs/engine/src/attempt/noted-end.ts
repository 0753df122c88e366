import type { ConvergenceCause } from "@konverge/core";

/** The stored end of an attempt. */
export interface NotedEnd {
  /** Size of its record. */
  readonly bytes: number;
  /** The time from the oldest request to the end by cause, in ms; undefined unless the attempt succeeded. */
  readonly convergence: Readonly<Record<ConvergenceCause, number>> | undefined;
}
