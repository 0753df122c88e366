import type { ConvergenceCause } from "@konverge/core";

/** The stored end of an attempt. */
export interface NotedEnd {
  /** Size of its record. */
  readonly bytes: number;
  /** Of a successful attempt: the time from its oldest request to its end by cause, in ms. */
  readonly convergence: Readonly<Record<ConvergenceCause, number>> | undefined;
}
