import { LARGEST_FLOOR, MAX_LEASE, type AdmitRequest } from "@konverge/core";
import { createDemandForecast } from "./demand-forecast.ts";
import type { TokenLeases } from "./token-leases.ts";
import type { WaitingLine } from "./waiting-line.ts";

/** Share of the last lease below which the next is fetched ahead. */
const PREFETCH_SHARE = 0.25;

/** How many tokens a process asks for: for those that wait, and ahead where the rate is not in the way. */
export interface TokenDemand {
  /** Tokens that are missing, on top of those that are promised. */
  missing(nowMs: number): number;
  /** True when nobody waits, and soon somebody may have to. */
  isRunningLow(nowMs: number): boolean;
  /** What to ask for now. */
  compose(nowMs: number): Pick<AdmitRequest, "want" | "need" | "floor">;
  /** A call was let through. */
  notePermit(): void;
  /** What an ask for `want` tokens brought, and whether it has to be waited for. */
  noteGrant(granted: number, want: number, waitMs: number): void;
  /** Nothing is known any more. */
  reset(): void;
}

export interface TokenDemandOptions {
  readonly line: WaitingLine;
  readonly leases: TokenLeases;
  /** Calls that may begin on top of those under way. */
  readonly room: () => number;
  readonly tokenTtlMs: number;
  readonly nowMs: number;
}

export function createTokenDemand(options: TokenDemandOptions): TokenDemand {
  const { line, leases, room } = options;
  const forecast = createDemandForecast(options.tokenTtlMs, options.nowMs);
  /** What the last ask for tokens brought: how many, and whether the rate was in the way. */
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
      // What is fetched ahead must not eat what is kept for higher classes.
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
