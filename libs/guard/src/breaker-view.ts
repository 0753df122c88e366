import { defined, KonvergeError, type BreakerMode, type GateCall } from "@konverge/core";
import { createCredentialRetry, type CredentialRetry } from "./credential-retry.ts";
import { createLocalHealth, type Health, type LocalHealth } from "./local-health.ts";
import { createProber, type Prober } from "./prober.ts";
import type { ResultClass } from "./result-class.ts";
import type { Schedule } from "./timers.ts";

/** The state of the breaker as a process last saw it. */
export interface BreakerUpdate {
  readonly mode: BreakerMode;
  /** 0 before the first update. */
  readonly generation: number;
  /** Time until calls can be admitted, in ms. */
  readonly waitMs: number;
}

/** A process's view of the shared breaker and of its own health. */
export interface BreakerView {
  readonly mode: BreakerMode;
  readonly generation: number;
  readonly news: BreakerUpdate;
  readonly health: Health["kind"];
  /** Returns the deferral of a call; undefined if the call can wait for a token or be the probe. */
  refuse(call: GateCall): KonvergeError | undefined;
  mayProbe(call: GateCall): boolean;
  /** Returns a deferral with jitter, so that calls with the same delay do not return together. */
  defer(why: string, afterMs: number, cause?: Error): KonvergeError;
  /** Returns true for a newer state, which voids earlier leases. */
  learn(news: BreakerUpdate): boolean;
  /** Records the result of a call of this process. */
  noteEnd(result: ResultClass): void;
  /** Pauses this process until a call has credentials again. Returns a deferral with the reason. */
  noteNoCredentials(error: KonvergeError): KonvergeError;
}

export interface BreakerViewOptions {
  readonly probe: ((signal: AbortSignal) => Promise<unknown>) | undefined;
  readonly onBreaker: (news: BreakerUpdate) => void;
  readonly onHealth: (health: Health["kind"], cause?: Error) => void;
  readonly clock: () => number;
  readonly random: () => number;
  readonly schedule: Schedule;
  /** Failures in a row after which this process pauses. */
  readonly failuresToPause: number;
  /** Number of workers that share the breaker, as last reported. */
  readonly live: () => number;
}

/** Longest jitter of a deferral, in ms. */
const DEFER_JITTER_MS = 1_000;
/** Delay for an isolated server, in ms. Short, because checks are local and workers take no jobs meanwhile. */
const ISOLATED_MS = 1_000;
/** Delay before credentials are tried again if their source states none, in ms. */
const NO_CREDENTIALS_MS = 1_000;
const SPREAD_PER_WORKER_MS = 50;
const MAX_SPREAD_MS = 1_000;

const WHY_LOCAL: Readonly<Record<Exclude<Health["kind"], "well">, string>> = {
  doubtful: "recent calls of this worker all failed",
  unwell: "this worker cannot reach the API server, but others can",
  unauthorized: "the API server rejects this worker's credentials (401)",
};
const WHY_MODE: Readonly<Record<Exclude<BreakerMode, "closed">, string>> = {
  open: "the circuit breaker of the API server is open",
  halfOpen: "the circuit breaker of the API server is half open",
  isolated: "the API server is isolated by an operator",
};

export function createBreakerView(options: BreakerViewOptions): BreakerView {
  return new ProcessBreakerView(options);
}

class ProcessBreakerView implements BreakerView {
  readonly #options: BreakerViewOptions;
  readonly #local: LocalHealth;
  readonly #prober: Prober;
  readonly #credentials: CredentialRetry;
  #mode: BreakerMode = "closed";
  #generation = 0;
  #untilMs = -Infinity;
  #health: Health["kind"] = "well";
  /** True if this process could not reach the server when others could: they probe first. */
  #wasUnwell = false;

  constructor(options: BreakerViewOptions) {
    const { random, schedule, probe, live, failuresToPause } = options;
    this.#options = options;
    this.#local = createLocalHealth(failuresToPause, random);
    this.#prober = createProber({
      probe,
      schedule,
      random,
      isDue: () => ["open", "halfOpen"].includes(this.#mode) || this.#isTripped(),
      waitMs: () => this.#untilProbeMs(),
      spreadMs: () => Math.min(MAX_SPREAD_MS, SPREAD_PER_WORKER_MS * live()),
    });
    this.#credentials = createCredentialRetry({
      probe,
      schedule,
      isMissing: () => this.#health === "unauthorized",
      release: () => {
        this.#local.noteCredentials();
        this.#noteHealth();
      },
    });
  }

  get mode(): BreakerMode {
    return this.#mode;
  }

  get generation(): number {
    return this.#generation;
  }

  get news(): BreakerUpdate {
    const waitMs = Math.max(0, this.#untilMs - this.#options.clock());
    return { mode: this.#mode, generation: this.#generation, waitMs };
  }

  get health(): Health["kind"] {
    return this.#health;
  }

  refuse(call: GateCall): KonvergeError | undefined {
    const nowMs = this.#options.clock();
    // Credentials are obtained before a call requests its permit.
    this.#local.noteCredentials();
    const own = this.#noteHealth();
    if (own.kind === "unauthorized") return this.defer(WHY_LOCAL[own.kind], own.againMs);
    if (this.#mode !== "closed") return this.#refuseUnlessProbe(call, this.#mode);
    if (own.kind === "well") return undefined;
    const isTest = own.kind === "unwell" || this.mayProbe(call);
    if (!isTest || nowMs < this.#local.tryMs) return this.defer(WHY_LOCAL[own.kind], own.againMs);
    this.#local.startTry(nowMs);
    return undefined;
  }

  mayProbe(call: GateCall): boolean {
    // Calls of users can be aborted at any time, and then give no evidence.
    return this.#options.probe === undefined || call.probe === true;
  }

  defer(why: string, afterMs: number, cause?: Error): KonvergeError {
    const atLeastMs = Math.max(100, afterMs);
    const jitterMs = this.#options.random() * Math.max(DEFER_JITTER_MS, atLeastMs / 4);
    const retryAfterMs = Math.ceil(atLeastMs + jitterMs);
    return new KonvergeError("deferred", `${why}; the call was not sent`, {
      retryAfterMs,
      ...defined({ cause }),
    });
  }

  learn(news: BreakerUpdate): boolean {
    if (news.generation < this.#generation) return false;
    const nowMs = this.#options.clock();
    if (this.#mode !== "closed" || news.mode !== "closed") this.#untilMs = nowMs + news.waitMs;
    if (news.generation === this.#generation && news.mode === this.#mode) return false;
    const isFirstContact = this.#generation === 0 && news.mode === "closed";
    if (this.#mode === "closed") this.#wasUnwell = this.#local.at(nowMs).kind === "unwell";
    this.#mode = news.mode;
    this.#generation = news.generation;
    this.#prober.cancel();
    if (this.#mode === "closed") this.#local.retry(nowMs);
    if (this.#mode !== "closed" || this.#isTripped()) this.#prober.arm();
    this.#noteHealth();
    if (!isFirstContact) this.#options.onBreaker(news);
    return true;
  }

  noteEnd(result: ResultClass): void {
    const nowMs = this.#options.clock();
    if (result === "ok") this.#local.noteOk();
    else if (result === "failed") this.#local.noteFailed(nowMs);
    else if (result === "unauthorized") this.#local.noteUnauthorized(nowMs);
    const own = this.#noteHealth();
    // Work is paused, so perhaps no other call would end the pause.
    if (own.kind === "unauthorized") this.#credentials.arm(own.againMs);
    if (this.#isTripped()) this.#prober.arm();
  }

  noteNoCredentials(error: KonvergeError): KonvergeError {
    const againMs = error.retryAfterMs ?? NO_CREDENTIALS_MS;
    this.#local.noteNoCredentials(this.#options.clock(), againMs);
    this.#noteHealth(error);
    this.#credentials.arm(againMs);
    return this.defer(error.message, againMs, error);
  }

  #refuseUnlessProbe(
    call: GateCall,
    mode: Exclude<BreakerMode, "closed">,
  ): KonvergeError | undefined {
    const waitMs = this.#untilMs - this.#options.clock();
    if (mode !== "isolated" && waitMs <= 0 && this.mayProbe(call)) return undefined;
    return this.defer(WHY_MODE[mode], mode === "isolated" ? ISOLATED_MS : waitMs);
  }

  /** The fleet's breaker is closed, but the last calls of this process all failed. */
  #isTripped(): boolean {
    return this.#mode === "closed" && !this.#local.isSound;
  }

  #untilProbeMs(): number {
    const nowMs = this.#options.clock();
    if (this.#mode === "closed") return this.#local.tryMs - nowMs;
    return this.#untilMs + (this.#wasUnwell ? MAX_SPREAD_MS : 0) - nowMs;
  }

  #noteHealth(cause?: Error): Health {
    const own = this.#local.at(this.#options.clock());
    // While the fleet's breaker is not closed, this process is not known to be the cause.
    const kind = this.#mode !== "closed" && own.kind === "unwell" ? "doubtful" : own.kind;
    if (kind !== this.#health) {
      this.#health = kind;
      this.#options.onHealth(kind, cause);
    }
    return own;
  }
}
