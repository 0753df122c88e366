import { BREAKER, type BreakerLimits, type OpeningReason } from "@konverge/core";
import type { GuardState } from "./guard-state.ts";

/** Applies the rules that open a closed breaker to counts decayed to now. */
export function openingReason(
  state: Pick<GuardState, "total" | "failed" | "slow" | "consecutive" | "strainedUs">,
  { failures, calls, failedShare }: BreakerLimits,
  nowUs: number,
): OpeningReason | undefined {
  const { total, failed, slow, consecutive, strainedUs } = state;
  if (consecutive >= failures) return "consecutive";
  if (total >= calls) {
    if (failed >= failedShare * total) return "failedShare";
    if (slow >= BREAKER.slowShare * total && failed >= BREAKER.slowFailedShare * total)
      return "slow";
  }
  if (strainedUs > 0 && nowUs - strainedUs >= BREAKER.strainedUs) return "strained";
  return undefined;
}

/** Returns the duration of the n-th consecutive opening: doubling, within 25 %, never below Retry-After. */
export function openDurationUs(
  openings: number,
  { openMs, maxOpenMs }: BreakerLimits,
  retryAfterUs: number,
  random: number,
): number {
  const base = Math.min(maxOpenMs * 1_000, openMs * 1_000 * 2 ** (openings - 1));
  return Math.max(retryAfterUs, Math.floor(base * (0.75 + 0.5 * random)));
}
