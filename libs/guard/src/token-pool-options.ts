import type { AdmitRequest, Gate, GuardLimits } from "@konverge/core";
import type { BreakerUpdate } from "./breaker-view.ts";
import type { Health } from "./local-health.ts";
import type { StoreAnswer } from "./scripts/admit.ts";
import type { Schedule } from "./timers.ts";
import type { Transition } from "./transition.ts";

export interface TokenPoolOptions {
  readonly workerId: string;
  readonly limits: GuardLimits;
  /** Sends one token request to Redis. */
  readonly admit: (request: AdmitRequest) => Promise<StoreAnswer>;
  /** Stores the limits in Redis when it has none. `isLoss`: it had some before. */
  readonly configure: (isLoss: boolean) => Promise<void>;
  /** False while Redis cannot be reached. */
  readonly reachable: () => boolean;
  /** Run ID of the Redis server; empty when unknown. */
  readonly runId: () => string;
  /** Upper bound of concurrent calls in this process; the current limit adapts below it. */
  readonly maxInFlight: number;
  /** Sends one read through this gate, as a call with `probe` set. Without it, any call may become the probe. */
  readonly probe?: ((signal: AbortSignal) => Promise<unknown>) | undefined;
  /** Called when this process sees a new breaker state. */
  readonly onBreaker: (update: BreakerUpdate) => void;
  /** Called when this process's own report changed the breaker. */
  readonly onTransition: (transition: Transition) => void;
  readonly onHealth: (health: Health["kind"], cause?: Error) => void;
  readonly onRevision: (revision: number) => void;
  readonly onError: (error: Error) => void;
  /** Monotonic time in ms. */
  readonly clock: () => number;
  readonly random: () => number;
  readonly schedule: Schedule;
}

/** A process's tokens for an API server. */
export interface TokenPool extends Required<Gate> {
  readonly breaker: BreakerUpdate;
  readonly health: Health["kind"];
  /** Calls that wait for a token. */
  readonly waiting: number;
  readonly waitingByClass: Readonly<Record<string, number>>;
  readonly inFlight: number;
  /** Calls per second of the whole fleet, as of the last answer. */
  readonly ratePerSecond: number;
  /** Token requests sent, calls admitted and calls deferred, since the start. */
  readonly counts: { readonly asks: number; readonly permits: number; readonly deferred: number };
  /** Applies a breaker update that arrived outside of an answer, such as a message of another process. */
  learn(update: BreakerUpdate): void;
  /** Sends a token request soon: Redis is available again, or its limits have changed. */
  refresh(): void;
  close(): void;
}
