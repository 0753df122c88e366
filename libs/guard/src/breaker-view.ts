import { KonvergeError, type BreakerMode, type GateCall } from "@konverge/core";
import { createCredentialRetry } from "./credential-retry.ts";
import { createLocalHealth, type Health } from "./local-health.ts";
import { createProber } from "./prober.ts";
import type { ResultClass } from "./result-class.ts";

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
  stop(): void;
}

export interface BreakerViewOptions {
  readonly probe: ((signal: AbortSignal) => Promise<unknown>) | undefined;
  readonly onBreaker: (news: BreakerUpdate) => void;
  readonly onHealth: (health: Health["kind"], cause?: Error) => void;
  readonly clock: () => number;
  readonly random: () => number;
  readonly schedule: (ms: number, work: () => void) => () => void;
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
  const { clock, random, schedule, probe } = options;
  const local = createLocalHealth(random);
  let mode: BreakerMode = "closed";
  let generation = 0;
  let untilMs = -Infinity;
  let health: Health["kind"] = "well";
  const prober = createProber({
    probe,
    schedule,
    random,
    isDue: () => mode === "open" || mode === "halfOpen",
    waitMs: () => untilMs - clock(),
    spreadMs: () => Math.min(MAX_SPREAD_MS, SPREAD_PER_WORKER_MS * options.live()),
  });
  const noteHealth = (kind: Health["kind"], cause?: Error) => {
    if (kind === health) return;
    health = kind;
    options.onHealth(kind, cause);
  };

  const credentials = createCredentialRetry({
    probe,
    schedule,
    isMissing: () => health === "unauthorized",
    release: () => {
      local.noteCredentials();
      noteHealth(local.at(clock()).kind);
    },
  });

  const view: BreakerView = {
    get mode() {
      return mode;
    },
    get generation() {
      return generation;
    },
    get news() {
      return { mode, generation, waitMs: Math.max(0, untilMs - clock()) };
    },
    get health() {
      return health;
    },
    refuse(call) {
      const nowMs = clock();
      // Credentials are obtained before a call requests its permit.
      local.noteCredentials();
      const own = local.at(nowMs);
      noteHealth(own.kind);
      if (own.kind === "unwell" && own.againMs === 0) local.startTry(nowMs);
      else if (own.kind !== "well") return view.defer(WHY_LOCAL[own.kind], own.againMs);
      if (mode === "closed") return undefined;
      if (mode !== "isolated" && nowMs >= untilMs && view.mayProbe(call)) return undefined;
      return view.defer(WHY_MODE[mode], mode === "isolated" ? ISOLATED_MS : untilMs - nowMs);
    },
    // Calls of users can be aborted at any time, and then give no evidence.
    mayProbe: (call) => probe === undefined || call.probe === true,
    defer(why, afterMs, cause) {
      const atLeastMs = Math.max(100, afterMs);
      const jitterMs = random() * Math.max(DEFER_JITTER_MS, atLeastMs / 4);
      const retryAfterMs = Math.ceil(atLeastMs + jitterMs);
      return new KonvergeError("deferred", `${why}; the call was not sent`, {
        retryAfterMs,
        cause,
      });
    },
    learn(news) {
      if (news.generation < generation) return false;
      if (mode !== "closed" || news.mode !== "closed") untilMs = clock() + news.waitMs;
      if (news.generation === generation && news.mode === mode) return false;
      const isFirstContact = generation === 0 && news.mode === "closed";
      ({ mode, generation } = news);
      // The failure affects the fleet, not this process alone.
      if (mode !== "closed") local.clear();
      if (mode === "closed") prober.stop();
      else prober.arm();
      if (!isFirstContact) options.onBreaker(news);
      return true;
    },
    noteEnd(result) {
      const nowMs = clock();
      if (result === "ok") local.noteOk();
      else if (result === "failed") local.noteFailed(nowMs);
      else if (result === "unauthorized") local.noteUnauthorized(nowMs);
      noteHealth(local.at(nowMs).kind);
    },
    noteNoCredentials(error) {
      const nowMs = clock();
      const againMs = error.retryAfterMs ?? NO_CREDENTIALS_MS;
      local.noteNoCredentials(nowMs, againMs);
      noteHealth(local.at(nowMs).kind, error);
      credentials.arm(againMs);
      return view.defer(error.message, againMs, error);
    },
    stop() {
      prober.stop();
      credentials.stop();
    },
  };
  return view;
}
