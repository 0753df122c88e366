import type { AnnouncedSource } from "../fleet/announced.ts";

/** The state of a source, as its leader last stored it. Times are in epoch ms, by the clock of the leader. */
export interface SourceReport {
  readonly controller: string;
  readonly source: string;
  readonly kind: AnnouncedSource["kind"];
  readonly worker: string;
  readonly atMs: number;
  /** Consecutive failures; for an inbound source, failed tries of the delivery that failed most often. */
  readonly failures: number;
  /** The first of them. */
  readonly failingSinceMs?: number;
  readonly error?: string;
  /** The last success. */
  readonly succeededAtMs?: number;
  /** Events that are not requested yet, and the age of the oldest. */
  readonly waiting: number;
  readonly lagMs: number;
}
