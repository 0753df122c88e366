import type { BreakerMode, Gate, GuardLimits, GuardLimitsInput } from "@konverge/core";
import type { RedisTarget } from "@konverge/redis";
import type { BreakerUpdate } from "./breaker-view.ts";
import type { Health } from "./local-health.ts";
import type { TokenPool } from "./token-pool-options.ts";
import type { Transition } from "./transition.ts";

export interface GuardOptions {
  readonly redis: RedisTarget;
  /** The guarded cluster: all processes that use the same name share one rate and one breaker. */
  readonly cluster: string;
  /** Separates installations that share one Redis. Default `konverge`. */
  readonly prefix?: string;
  /** Unique per process. */
  readonly workerId: string;
  /** Limits of the fleet. The process that started last wins; all processes report the change. */
  readonly limits?: GuardLimitsInput;
  /** Keep the limits that another process has stored; `limits` apply only if there are none. Default false. */
  readonly keepLimits?: boolean;
  /** Upper bound of concurrent calls in this process. Default 64. Too low leaves the rate unused. */
  readonly maxInFlight?: number;
  /**
   * Sends one read through this gate, as a call with `probe` set, to check whether the server has recovered. Without it,
   * the next call is the probe.
   */
  readonly probe?: (signal: AbortSignal) => Promise<unknown>;
  readonly onEvent?: (event: GuardEvent) => void;
}

/** An event that is worth a log line. */
export type GuardEvent =
  /** A report of this process changed the breaker. */
  | { readonly kind: "transition"; readonly transition: Transition }
  /** The breaker changed, through a report of any process. */
  | {
      readonly kind: "breaker";
      readonly mode: BreakerMode;
      readonly generation: number;
      readonly waitMs: number;
    }
  /** The health of this process's own access changed; with the cause if its credentials cannot be obtained. */
  | { readonly kind: "health"; readonly health: Health["kind"]; readonly cause?: Error }
  /** The limits differ from the configuration of this process, or match it again. */
  | {
      readonly kind: "limits";
      readonly limits: GuardLimits;
      readonly by: string;
      readonly ours: boolean;
    }
  | { readonly kind: "error"; readonly error: Error };

export interface Guard extends Required<Gate>, AsyncDisposable {
  readonly breaker: BreakerUpdate;
  readonly health: Health["kind"];
  /** Calls of this process that wait for a token, and calls in flight. */
  readonly waiting: number;
  /** The waiting calls by class. */
  readonly waitingByClass: TokenPool["waitingByClass"];
  readonly inFlight: number;
  /** Calls per second of the whole fleet, as of the last answer: failures lower it, successes restore it. */
  readonly ratePerSecond: number;
  /** Token requests, admitted and deferred calls of this process since the start. */
  readonly counts: TokenPool["counts"];
  /** Calls `listener` with the current state, and again when work must pause or may resume. */
  onWorkable(listener: (workable: boolean) => void): () => void;
  close(): Promise<void>;
}
