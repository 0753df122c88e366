import type { ConvergenceCause } from "@konverge/core";
import type { SloEvent } from "@konverge/telemetry";

/** The stored end of an attempt. */
export interface NotedEnd {
  /** Size of its record. */
  readonly bytes: number;
  /** The time from the oldest request to the end by cause, in ms; undefined unless the attempt succeeded. */
  readonly convergence: Readonly<Record<ConvergenceCause, number>> | undefined;
  /** Whether the end of a change was within the objective of the controller; undefined if it does not count. */
  readonly slo: SloEvent | undefined;
}
