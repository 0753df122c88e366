import { TOKEN_RANK } from "@konverge/core";

/** The times before which token requests are useless, in ms of the clock. */
export interface AskSchedule {
  /** Returns the time of the next request for calls of this rank; in the past if it may be sent now. */
  nextMs(rank: number): number;
  /** Records an answer: no request for calls of this rank, or of lower classes, before `untilMs`. */
  noteAnswer(rank: number, untilMs: number): void;
  /** Suspends all requests. */
  hold(untilMs: number): void;
  reset(): void;
}

export function createAskSchedule(): AskSchedule {
  let heldMs = -Infinity;
  let criticalMs = -Infinity;
  let turn = { rank: TOKEN_RANK.resync, atMs: -Infinity };
  return {
    nextMs(rank) {
      if (rank === TOKEN_RANK.critical) return Math.max(heldMs, criticalMs);
      // A call of a higher class does not wait for the turn of a lower one.
      return rank < turn.rank ? heldMs : Math.max(heldMs, turn.atMs);
    },
    noteAnswer(rank, untilMs) {
      if (rank === TOKEN_RANK.critical) criticalMs = untilMs;
      else turn = { rank, atMs: untilMs };
    },
    hold(untilMs) {
      heldMs = untilMs;
    },
    reset() {
      heldMs = criticalMs = -Infinity;
      turn = { rank: TOKEN_RANK.resync, atMs: -Infinity };
    },
  };
}
