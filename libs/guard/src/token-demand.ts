import { MAX_LEASE, TOKEN_RANK, type AdmitRequest } from "@konverge/core";
import { createDemandForecast } from "./demand-forecast.ts";
import type { TokenLeases } from "./token-leases.ts";
import type { WaitingLine } from "./waiting-line.ts";

/** Share of the last lease below which the next one is prefetched. */
const PREFETCH_SHARE = 0.25;
/** A process whose next call follows within this time is expected to call again, in ms. */
const RETURN_MS = 1_000;

/** Computes the tokens to request: for waiting calls, and ahead if the rate is not exhausted. */
export interface TokenDemand {
  /** True if waiting calls need a request: for the first one, or for more tokens than are promised. */
  isLacking(nowMs: number): boolean;
  /** True if no call waits, but tokens are about to run out. */
  isRunningLow(nowMs: number): boolean;
  /** Returns the current demand. */
  compose(nowMs: number): Pick<AdmitRequest, "want" | "need" | "rank" | "turn">;
  /** Records that a call waits in an empty line, `idleMs` after the last call. */
  noteReturn(idleMs: number): void;
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
  let isReturning = true;

  /** Tokens of waiting calls that can start, at least those of the first, beyond the promised ones. */
  const missing = ({ need, want }: { need: number; want: number }, left: number) =>
    Math.max(need, Math.min(room(), want)) - left;

  return {
    isLacking(nowMs) {
      const demand = line.demand(nowMs);
      if (demand === undefined) return false;
      const left = leases.left(nowMs);
      // While tokens are promised, more waiting calls join the next request; one request each would cost a round trip per call.
      return left < demand.need || missing(demand, left) > left;
    },
    isRunningLow(nowMs) {
      if (isBinding || lastGrant <= 1 || forecast.at(nowMs) === 0) return false;
      return leases.left(nowMs) < PREFETCH_SHARE * lastGrant;
    },
    compose(nowMs) {
      const demand = line.demand(nowMs);
      const left = leases.left(nowMs);
      const expected = isBinding ? 0 : forecast.at(nowMs);
      // Prefetching must not use tokens that are reserved for higher classes.
      if (demand === undefined) {
        const want = Math.min(MAX_LEASE, Math.max(0, expected - left));
        return { want, need: Math.min(1, want), rank: TOKEN_RANK.resync, turn: "none" };
      }
      const { rank } = demand;
      const ahead = rank === TOKEN_RANK.critical ? 0 : expected;
      const want = Math.min(MAX_LEASE, Math.max(0, missing(demand, left)) + ahead);
      const turn = isReturning ? "again" : "once";
      // Tokens of several leases may not be usable together, so one lease must suffice for the first call.
      if (left < demand.need)
        return { want: Math.max(want, demand.need), need: demand.need, rank, turn };
      return { want, need: Math.min(1, want), rank, turn };
    },
    noteReturn(idleMs) {
      isReturning = idleMs < RETURN_MS;
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
