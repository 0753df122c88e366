import type { EngineOptions } from "@konverge/engine";

/** Scales client-go's proportions of 15 s, 10 s and 2 s. */
export function electionTimes(
  leaseDurationMs: number,
): Required<NonNullable<EngineOptions["election"]>> {
  return {
    leaseDurationMs,
    renewDeadlineMs: (leaseDurationMs * 2) / 3,
    retryPeriodMs: (leaseDurationMs * 2) / 15,
  };
}
