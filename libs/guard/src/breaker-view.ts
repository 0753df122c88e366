import { KonvergeError, type BreakerMode, type GateCall } from "@konverge/core";
import { createLocalHealth, type Health } from "./local-health.ts";
import { createProber } from "./prober.ts";
import type { ResultClass } from "./result-class.ts";

/** What a process knows of the breaker. */
export interface BreakerUpdate {
  readonly mode: BreakerMode;
  /** 0: nothing is known yet. */
  readonly generation: number;
  /** Nothing is granted before, as far as is known. */
  readonly waitMs: number;
}

/** How one process sees the fleet's breaker, and itself. */
export interface BreakerView {
  readonly mode: BreakerMode;
  readonly generation: number;
  readonly news: BreakerUpdate;
  readonly health: Health["kind"];
  /** Why a call may not be sent, and when to try again; undefined when it may wait for a token, or be the probe. */
  refuse(call: GateCall): KonvergeError | undefined;
  mayProbe(call: GateCall): boolean;
  /** A deferral with a jitter that keeps those who were told the same time from coming back together. */
  defer(why: string, afterMs: number): KonvergeError;
  /** True when it is news: what was leased before is void. */
  learn(news: BreakerUpdate): boolean;
  /** A call of this process ended. */
  noteEnd(result: ResultClass): void;
  stop(): void;
}

export interface BreakerViewOptions {
  readonly probe: ((signal: AbortSignal) => Promise<unknown>) | undefined;
  readonly onBreaker: (news: BreakerUpdate) => void;
  readonly onHealth: (health: Health["kind"]) => void;
  readonly clock: () => number;
  readonly random: () => number;
  readonly schedule: (ms: number, work: () => void) => () => void;
  /** Workers that share the breaker, as far as is known. */
  readonly live: () => number;
}

/** Waited out at most when told to defer, on top of what is known. */
const DEFER_JITTER_MS = 1_000;
/** Nobody knows when a person resets it. To ask this process again costs nothing, and workers fetch no work until then. */
const ISOLATED_MS = 1_000;
const SPREAD_PER_WORKER_MS = 50;
const MAX_SPREAD_MS = 1_000;

const WHY_LOCAL: Readonly<Record<Exclude<Health["kind"], "well">, string>> = {
  doubtful: "every call of this worker failed lately",
  unwell: "this worker cannot reach the API server, though others can",
  unauthorized: "the API server refuses this worker's credentials (401)",
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
  const noteHealth = (kind: Health["kind"]) => {
    if (kind === health) return;
    health = kind;
    options.onHealth(kind);
  };

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
      const own = local.at(nowMs);
      noteHealth(own.kind);
      if (own.kind === "unwell" && own.againMs === 0) local.startTry(nowMs);
      else if (own.kind !== "well") return view.defer(WHY_LOCAL[own.kind], own.againMs);
      if (mode === "closed") return undefined;
      if (mode !== "isolated" && nowMs >= untilMs && view.mayProbe(call)) return undefined;
      return view.defer(WHY_MODE[mode], mode === "isolated" ? ISOLATED_MS : untilMs - nowMs);
    },
    // The callers' own calls may be given up at any moment, and then say nothing.
    mayProbe: (call) => probe === undefined || call.probe === true,
    defer(why, afterMs) {
      const atLeastMs = Math.max(100, afterMs);
      const jitterMs = random() * Math.max(DEFER_JITTER_MS, atLeastMs / 4);
      const retryAfterMs = Math.ceil(atLeastMs + jitterMs);
      return new KonvergeError("deferred", `${why}; the call was not sent`, { retryAfterMs });
    },
    learn(news) {
      if (news.generation < generation) return false;
      if (mode !== "closed" || news.mode !== "closed") untilMs = clock() + news.waitMs;
      if (news.generation === generation && news.mode === mode) return false;
      const isFirstContact = generation === 0 && news.mode === "closed";
      ({ mode, generation } = news);
      // From here on it is the fleet's trouble, not ours.
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
    stop: () => prober.stop(),
  };
  return view;
}
