import { BREAKER, type OpeningReason } from "@konverge/core";
import type { GuardState } from "./guard-state.ts";

/** The rules that open a closed breaker, given counts that are decayed to now. */
export function openingReason(
  state: Pick<GuardState, "total" | "failed" | "slow" | "consecutive" | "strainedUs">,
  nowUs: number,
): OpeningReason | undefined {
  const { total, failed, slow, consecutive, strainedUs } = state;
  if (consecutive >= BREAKER.consecutive) return "consecutive";
  if (total >= BREAKER.minCalls) {
    if (failed >= BREAKER.failedShare * total) return "failedShare";
    if (slow >= BREAKER.slowShare * total && failed >= BREAKER.slowFailedShare * total)
      return "slow";
  }
  if (strainedUs > 0 && nowUs - strainedUs >= BREAKER.strainedUs) return "strained";
  return undefined;
}

/** How long the n-th opening in a row lasts: doubling, within 25 % of that, never shorter than the server asked. */
export function openDurationUs(openings: number, retryAfterUs: number, random: number): number {
  const base = Math.min(BREAKER.maxOpenUs, BREAKER.openUs * 2 ** (openings - 1));
  return Math.max(retryAfterUs, Math.floor(base * (0.75 + 0.5 * random)));
}
