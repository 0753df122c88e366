import { LARGEST_FLOOR, MAX_LEASE, type AdmitRequest } from "@konverge/core";
import { createDemandForecast } from "./demand-forecast.ts";
import type { TokenLeases } from "./token-leases.ts";
import type { WaitingLine } from "./waiting-line.ts";

/** Share of the last lease below which the next one is prefetched. */
const PREFETCH_SHARE = 0.25;

/** Computes the tokens to request: for waiting calls, and ahead if the rate is not exhausted. */
export interface TokenDemand {
  /** Missing tokens beyond the promised ones. */
  missing(nowMs: number): number;
  /** True if no call waits, but tokens are about to run out. */
  isRunningLow(nowMs: number): boolean;
  /** Returns the current demand. */
  compose(nowMs: number): Pick<AdmitRequest, "want" | "need" | "floor">;
  /** Records an admitted call. */
  notePermit(): void;
  /** Records the answer to a request for `want` tokens, and whether its tokens are delayed. */
  noteGrant(granted: number, want: number, waitMs: number): void;
  /** Resets the forecast. */
  reset(): void;
}

export interface TokenDemandOptions {
  readonly line: WaitingLine;
  readonly leases: TokenLeases;
  /** Calls that can start in addition to those in flight. */
  readonly room: () => number;
  readonly tokenTtlMs: number;
  readonly nowMs: number;
}

export function createTokenDemand(options: TokenDemandOptions): TokenDemand {
  const { line, leases, room } = options;
  const forecast = createDemandForecast(options.tokenTtlMs, options.nowMs);
  /** The last answer: the number of tokens, and whether the rate limited it. */
  let lastGrant = 0;
  let isBinding = true;

  const missing = (nowMs: number) =>
    Math.min(room(), line.demand(nowMs)?.want ?? 0) - leases.left(nowMs);

  return {
    missing,
    isRunningLow(nowMs) {
      if (isBinding || lastGrant <= 1 || forecast.at(nowMs) === 0) return false;
      return leases.left(nowMs) < PREFETCH_SHARE * lastGrant;
    },
    compose(nowMs) {
      const demand = line.demand(nowMs);
      const expected = isBinding ? 0 : forecast.at(nowMs);
      // Prefetching must not use tokens that are reserved for higher classes.
      if (demand === undefined) {
        const want = Math.min(MAX_LEASE, Math.max(0, expected - leases.left(nowMs)));
        return { want, need: Math.min(1, want), floor: LARGEST_FLOOR };
      }
      const wanted = Math.max(0, missing(nowMs));
      const want = Math.min(MAX_LEASE, wanted + expected);
      return {
        want,
        need: Math.min(want, wanted > 0 ? demand.need : 1),
        floor: demand.floor,
      };
    },
    notePermit: () => forecast.note(),
    noteGrant(granted, want, waitMs) {
      isBinding = granted < want || waitMs > 0;
      if (granted > 0) lastGrant = granted;
    },
    reset() {
      lastGrant = 0;
      isBinding = true;
    },
  };
}
