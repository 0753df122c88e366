import { TOKEN_RANK, type AdmitRequest } from "@konverge/core";
import type { BreakerView } from "./breaker-view.ts";
import type { CallReports } from "./call-reports.ts";
import type { TokenDemand } from "./token-demand.ts";
import type { TokenLeases } from "./token-leases.ts";
import type { TokenPoolOptions } from "./token-pool-options.ts";
import type { Waiter, WaitingLine } from "./waiting-line.ts";

interface AskParts {
  readonly options: Pick<TokenPoolOptions, "workerId" | "runId" | "random">;
  readonly line: WaitingLine;
  readonly leases: TokenLeases;
  readonly reports: CallReports;
  readonly demand: TokenDemand;
  readonly breaker: BreakerView;
}

/** Composes the token requests of a worker: results, demand, and the probe. */
export class AskComposer {
  readonly #parts: AskParts;
  /** Time of the fleet's clock in the last answer, and when its request was sent. */
  #answered: { readonly atUs: number; readonly sentMs: number } | undefined;
  #tickets = 0;

  constructor(parts: AskParts) {
    this.#parts = parts;
  }

  noteAnswer(atUs: number, sentMs: number): void {
    this.#answered = { atUs, sentMs };
  }

  /** Forgets the last answer, which another Redis server gave. */
  forget(): void {
    this.#answered = undefined;
  }

  /** Takes the results so far out of the reports. */
  compose(nowMs: number): AdmitRequest {
    const { options, reports, breaker } = this.#parts;
    return {
      worker: options.workerId,
      runId: options.runId(),
      answeredUs: this.#answered?.atUs ?? 0,
      elapsedUs: Math.floor((nowMs - (this.#answered?.sentMs ?? nowMs)) * 1_000),
      ...reports.take(breaker.generation, nowMs),
      ...this.#composeDemand(nowMs),
      random: options.random(),
    };
  }

  /** Returns true if the first waiting call can have the tokens that critical calls used. */
  mayReturn(first: Waiter | undefined): boolean {
    return (
      first !== undefined &&
      first.call.priority !== "critical" &&
      this.#parts.leases.borrowed >= first.cost
    );
  }

  #composeDemand(nowMs: number): Pick<AdmitRequest, "want" | "need" | "rank" | "turn" | "probe"> {
    const { options, line, leases, demand, breaker } = this.#parts;
    const first = line.first(nowMs);
    if (breaker.mode !== "closed") {
      const mayProbe = first !== undefined && breaker.mayProbe(first.call);
      const probe = mayProbe ? `${options.workerId}/${++this.#tickets}` : "";
      return { want: 0, need: 0, rank: TOKEN_RANK.ordinary, turn: "none", probe };
    }
    const composed = { ...demand.compose(nowMs), probe: "" };
    const isReturn = this.mayReturn(first) && leases.left(nowMs) < (first?.cost ?? 0);
    if (!isReturn) return composed;
    return { ...composed, want: leases.borrowed, rank: TOKEN_RANK.critical, turn: "none" };
  }
}
