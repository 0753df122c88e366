/** Tokens of one lease: usable from `fromMs` until before `untilMs`, on this process's monotonic clock. */
interface ShelvedLease {
  tokens: number;
  readonly fromMs: number;
  readonly untilMs: number;
  readonly generation: number;
  /** True if the tokens are of the worker's turn, not of a request for critical calls. */
  readonly isTurn: boolean;
}

export interface TakenTokens {
  readonly generation: number;
  /** The tokens among them that are of the worker's turn. */
  readonly ofTurn: number;
}

export interface TokenLeases {
  put(lease: ShelvedLease): void;
  /** Takes `cost` tokens that are usable now, all of one generation, or none. */
  take(cost: number, nowMs: number): TakenTokens | undefined;
  /** Tokens that are usable now or will be. */
  left(nowMs: number): number;
  /** Time at which the next promised tokens become usable or the next tokens expire; undefined without tokens. */
  nextMs(nowMs: number): number | undefined;
  /** Drops all tokens after a change of the breaker. */
  clear(): void;
}

/** The tokens that this process holds. They expire; returning them would break the bound. */
export function createTokenLeases(): TokenLeases {
  let leases: ShelvedLease[] = [];
  const usable = (lease: ShelvedLease, nowMs: number) =>
    lease.fromMs <= nowMs && nowMs < lease.untilMs && lease.tokens > 0;
  const drop = (nowMs: number) => {
    if (leases.some((lease) => nowMs >= lease.untilMs || lease.tokens === 0)) {
      leases = leases.filter((lease) => nowMs < lease.untilMs && lease.tokens > 0);
    }
  };
  return {
    put(lease) {
      leases.push({ ...lease });
    },
    take(cost, nowMs) {
      drop(nowMs);
      const now = leases.filter((lease) => usable(lease, nowMs));
      if (now.reduce((sum, { tokens }) => sum + tokens, 0) < cost) return undefined;
      let open = cost;
      let ofTurn = 0;
      for (const lease of now) {
        const taken = Math.min(open, lease.tokens);
        lease.tokens -= taken;
        open -= taken;
        if (lease.isTurn) ofTurn += taken;
      }
      return { generation: now[0]?.generation ?? 0, ofTurn };
    },
    left(nowMs) {
      drop(nowMs);
      return leases.reduce((sum, { tokens }) => sum + tokens, 0);
    },
    nextMs(nowMs) {
      drop(nowMs);
      const later = leases.map(({ fromMs, untilMs }) => (fromMs > nowMs ? fromMs : untilMs));
      return later.length === 0 ? undefined : Math.min(...later);
    },
    clear() {
      leases = [];
    },
  };
}
