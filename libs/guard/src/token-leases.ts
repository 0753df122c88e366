/** Most tokens of turns that are requested again after critical calls used them. */
const MAX_BORROWED = 16;

/** Tokens of one lease: usable from `fromMs` until before `untilMs`, on this process's monotonic clock. */
interface ShelvedLease {
  tokens: number;
  readonly fromMs: number;
  readonly untilMs: number;
  readonly generation: number;
  /** True if the tokens are of the worker's turn, not of a request for critical calls. */
  readonly isTurn: boolean;
}

export interface TokenLeases {
  put(lease: ShelvedLease): void;
  /** Takes `cost` tokens that are usable now, all of one generation, or none. */
  take(
    cost: number,
    nowMs: number,
    isCritical: boolean,
  ): { readonly generation: number } | undefined;
  /** Tokens of turns that critical calls used. They are requested again as critical, or other calls would starve. */
  readonly borrowed: number;
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
  let borrowed = 0;
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
    get borrowed() {
      return borrowed;
    },
    take(cost, nowMs, isCritical) {
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
      const change = isCritical ? ofTurn : ofTurn - cost;
      borrowed = Math.min(MAX_BORROWED, Math.max(0, borrowed + change));
      return { generation: now[0]?.generation ?? 0 };
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
      borrowed = 0;
    },
  };
}
