import {
  ensureError,
  KonvergeError,
  LARGEST_FLOOR,
  MAX_LEASE,
  type AdmitAsk,
  type BreakerMode,
  type CallResult,
  type Gate,
  type GateCall,
  type GuardLimits,
  type Permit,
} from "@konverge/core";
import type { StoreAnswer, Transition } from "./guard-store.ts";
import { createLeaseShelf } from "./lease-shelf.ts";
import { createLocalHealth, type Health } from "./local-health.ts";
import { createOutcomeTally } from "./outcome-tally.ts";
import { createProber } from "./prober.ts";
import { classifyResult, isSlow } from "./result-class.ts";
import { createWaitingLine, type Waiter } from "./waiting-line.ts";

/** What this process knows of the breaker. */
export interface BreakerNews {
  readonly mode: BreakerMode;
  readonly generation: number;
  /** Nothing is granted before, as far as is known. */
  readonly waitMs: number;
}

export interface TokenShareOptions {
  readonly workerId: string;
  readonly limits: GuardLimits;
  /** Sends one ask to Redis. */
  readonly admit: (ask: AdmitAsk) => Promise<StoreAnswer>;
  /** Tells Redis the limits, when it knows none. */
  readonly configure: () => Promise<void>;
  /** False while nothing can be sent. */
  readonly reachable: () => boolean;
  /** Of the Redis at the other end; empty when unknown. */
  readonly runId: () => string;
  /** Calls at once in this process. */
  readonly maxInFlight: number;
  /** Makes one read through this gate, to see whether the server is back. Without it any call may be the probe. */
  readonly probe?: ((signal: AbortSignal) => Promise<unknown>) | undefined;
  /** The breaker moved, as seen from here. */
  readonly onBreaker: (news: BreakerNews) => void;
  /** This process's own report moved it. */
  readonly onTransition: (transition: Transition) => void;
  readonly onHealth: (health: Health["kind"]) => void;
  readonly onRevision: (revision: number) => void;
  readonly onError: (error: Error) => void;
  /** Monotonic time in ms. */
  readonly clock: () => number;
  readonly random: () => number;
  /** Runs `work` once after `ms`; the result cancels. */
  readonly schedule: (ms: number, work: () => void) => () => void;
}

export interface TokenShare extends Gate {
  readonly breaker: BreakerNews;
  readonly health: Health["kind"];
  readonly waiting: number;
  readonly inFlight: number;
  /** Of the whole fleet, as last told. */
  readonly ratePerSecond: number;
  /** Round trips to Redis, and calls permitted, since the start. */
  readonly counts: { readonly asks: number; readonly permits: number; readonly deferred: number };
  /** Told by another way than an answer, such as a message of another process. */
  learn(news: BreakerNews): void;
  /** Redis is back, or its limits have changed: asks again soon. */
  refresh(): void;
  close(): void;
}

/** Outcomes wait so long for an ask to ride on. */
const FLUSH_MS = 250;
/** So many failures in a row are told at once. */
const URGENT_FAILURES = 3;
const REDIS_AWAY_MS = [100, 1_000] as const;
/** A call that nobody aborts gives up here when Redis stays away. */
const LONGEST_WAIT_MS = 30_000;
/** Share of the last lease below which the next is fetched ahead. */
const PREFETCH_SHARE = 0.25;
/** Waited out at most when told to defer, on top of what is known. */
const DEFER_JITTER_MS = 1_000;

/**
 * The local side of a guard: keeps leased tokens, lets calls wait in order, reports how they ended, and never polls. One
 * ask is under way at a time; with tokens at hand a call costs no round trip.
 */
export function createTokenShare(options: TokenShareOptions): TokenShare {
  const { clock, random, schedule, limits } = options;
  const line = createWaitingLine();
  const shelf = createLeaseShelf();
  const tally = createOutcomeTally();
  const local = createLocalHealth(random);
  const counts = { asks: 0, permits: 0, deferred: 0 };
  let mode: BreakerMode = "closed";
  let generation = 0;
  let untilMs = -Infinity;
  let live = 1;
  let rate = limits.ratePerSecond;
  let revision = 0;
  let inFlight = 0;
  let asking = false;
  let askAgainMs = -Infinity;
  let awayMs = 0;
  let lastGrant = 0;
  let isBinding = true;
  let deadOnArrival = 0;
  let verdict: Pick<AdmitAsk, "ticket" | "verdict"> | undefined;
  let tickets = 0;
  let health: Health["kind"] = "well";
  let closed = false;
  let cancelTimer: () => void = () => undefined;
  let cancelFlush: (() => void) | undefined;
  let demand = { sinceMs: clock(), permits: 0, perMs: 0 };

  const prober = createProber({
    probe: options.probe,
    schedule,
    random,
    isDue: () => mode === "open" || mode === "halfOpen",
    waitMs: () => untilMs - clock(),
    spreadMs: () => 50 * Math.min(20, live),
  });

  const gate: TokenShare = {
    admit(call, { signal } = {}) {
      return new Promise<Permit>((resolve, reject) => {
        signal?.throwIfAborted();
        const nowMs = clock();
        const refusal = refuse(call, nowMs);
        if (refusal !== undefined) {
          counts.deferred += 1;
          reject(refusal);
          return;
        }
        const cost = costOf(call, limits);
        if (line.size === 0 && inFlight < options.maxInFlight && mode === "closed") {
          const taken = shelf.take(cost, nowMs);
          if (taken !== undefined) {
            resolve(permit(call, { generation: taken.generation, waitedMs: 0 }));
            pump();
            return;
          }
        }
        wait({ call, cost, resolve, reject }, nowMs, signal);
        pump();
      });
    },
    get breaker() {
      return { mode, generation, waitMs: Math.max(0, untilMs - clock()) };
    },
    get health() {
      return health;
    },
    get waiting() {
      return line.size;
    },
    get inFlight() {
      return inFlight;
    },
    get ratePerSecond() {
      return rate;
    },
    counts,
    learn: moveTo,
    refresh() {
      awayMs = 0;
      askAgainMs = -Infinity;
      pump();
    },
    close() {
      closed = true;
      cancelTimer();
      cancelFlush?.();
      prober.stop();
      for (const waiter of line.drain())
        waiter.reject(new KonvergeError("cancelled", "the guard is closed"));
    },
  };
  return gate;

  function refuse(call: GateCall, nowMs: number): KonvergeError | undefined {
    if (closed) return new KonvergeError("cancelled", "the guard is closed");
    const own = local.at(nowMs);
    noteHealth(own.kind);
    if (own.kind === "unwell" && own.againMs === 0) local.startTry(nowMs);
    else if (own.kind !== "well") return defer(WHY_LOCAL[own.kind], own.againMs);
    if (mode === "closed") return undefined;
    if (mode === "isolated")
      return defer("the API server is isolated by an operator", untilMs - nowMs);
    if (nowMs >= untilMs && mayProbe(call)) return undefined;
    return defer(
      `the circuit breaker of the API server is ${mode === "open" ? "open" : "half open"}`,
      untilMs - nowMs,
    );
  }

  /** The jitter keeps those who were told the same time from coming back together. */
  function defer(why: string, afterMs: number): KonvergeError {
    const atLeastMs = Math.max(100, afterMs);
    const retryAfterMs = Math.ceil(atLeastMs + random() * Math.max(DEFER_JITTER_MS, atLeastMs / 4));
    return new KonvergeError("deferred", `${why}; the call was not sent`, { retryAfterMs });
  }

  function mayProbe({ verb }: GateCall): boolean {
    return options.probe === undefined || verb === "get";
  }

  function wait(
    entry: Pick<Waiter, "call" | "cost" | "resolve" | "reject">,
    sinceMs: number,
    signal: AbortSignal | undefined,
  ): void {
    const onAbort = () => {
      line.remove(waiter);
      // oxlint-disable-next-line typescript/prefer-promise-reject-errors -- the reason is the caller's own
      entry.reject(signal?.reason);
    };
    const waiter: Waiter = {
      ...entry,
      sinceMs,
      resolve(given) {
        signal?.removeEventListener("abort", onAbort);
        entry.resolve(given);
      },
      reject(error) {
        signal?.removeEventListener("abort", onAbort);
        entry.reject(error);
      },
    };
    signal?.addEventListener("abort", onAbort, { once: true });
    line.add(waiter);
  }

  function permit(
    call: GateCall,
    given: { readonly generation: number; readonly waitedMs: number; readonly ticket?: string },
  ): Permit {
    inFlight += 1;
    counts.permits += 1;
    demand.permits += 1;
    const startedMs = clock();
    let isSettled = false;
    return {
      waitedMs: given.waitedMs,
      settle(result) {
        if (isSettled) return;
        isSettled = true;
        inFlight -= 1;
        noteEnd(call, result, { ...given, startedMs });
        pump();
      },
    };
  }

  function noteEnd(
    { verb }: GateCall,
    result: CallResult,
    given: { readonly generation: number; readonly startedMs: number; readonly ticket?: string },
  ): void {
    const nowMs = clock();
    const kind = classifyResult(result);
    if (kind === "ok") local.noteOk();
    else if (kind === "failed") local.noteFailed(nowMs);
    else if (kind === "unauthorized") local.noteUnauthorized(nowMs);
    noteHealth(local.at(nowMs).kind);
    if (given.ticket !== undefined) {
      verdict = {
        ticket: given.ticket,
        verdict: kind === "ok" || kind === "failed" ? kind : "neutral",
      };
      askAgainMs = -Infinity;
      void ask();
      return;
    }
    const retryAfterMs = result.kind === "response" ? (result.retryAfterMs ?? 0) : 0;
    tally.note({
      generation: given.generation,
      class: kind,
      slow: isSlow(verb, nowMs - given.startedMs),
      retryAfterMs,
    });
    if (tally.size === 0) return;
    if (tally.trailing >= URGENT_FAILURES || kind === "throttled") void ask();
    else cancelFlush ??= schedule(FLUSH_MS, () => void ask());
  }

  function noteHealth(kind: Health["kind"]): void {
    if (kind === health) return;
    health = kind;
    options.onHealth(kind);
  }

  /** Serves who can be served, asks for what is missing, and otherwise sets the one timer. */
  function pump(): void {
    if (closed) return;
    cancelTimer();
    const nowMs = clock();
    while (mode === "closed" && inFlight < options.maxInFlight) {
      const next = line.first(nowMs);
      const taken = next === undefined ? undefined : shelf.take(next.cost, nowMs);
      if (next === undefined || taken === undefined) break;
      line.remove(next);
      next.resolve(
        permit(next.call, { generation: taken.generation, waitedMs: nowMs - next.sinceMs }),
      );
    }
    if (inFlight >= options.maxInFlight && mode === "closed") return;
    // While tokens are promised, some more waiters go with the next ask: each for itself would cost a round trip a call.
    if (line.size === 0 ? isRunningLow(nowMs) : missing(nowMs) > shelf.left(nowMs)) {
      if (nowMs >= askAgainMs) void ask();
      else wake(askAgainMs - nowMs);
    } else if (line.size > 0) {
      const dueMs = shelf.nextMs(nowMs);
      if (dueMs !== undefined) wake(dueMs - nowMs);
    }
  }

  function wake(ms: number): void {
    // A timer may fire a little early.
    cancelTimer = schedule(Math.max(1, Math.ceil(ms)), pump);
  }

  /** Tokens to ask for, on top of those that are promised. */
  function missing(nowMs: number): number {
    const room = options.maxInFlight - inFlight;
    return Math.min(room, line.demand(nowMs)?.want ?? 0) - shelf.left(nowMs);
  }

  function isRunningLow(nowMs: number): boolean {
    return (
      !isBinding &&
      lastGrant > 1 &&
      predicted(nowMs) > 0 &&
      shelf.left(nowMs) < PREFETCH_SHARE * lastGrant
    );
  }

  /** Calls to be expected while a token lives, by how many there were lately. */
  function predicted(nowMs: number): number {
    const elapsedMs = nowMs - demand.sinceMs;
    if (elapsedMs >= limits.tokenTtlMs) {
      const perMs = demand.permits / elapsedMs;
      demand = { sinceMs: nowMs, permits: 0, perMs: (demand.perMs + perMs) / 2 };
    }
    return Math.floor(demand.perMs * limits.tokenTtlMs);
  }

  async function ask(): Promise<void> {
    if (asking || closed) return;
    if (!options.reachable()) return redisAway();
    asking = true;
    cancelFlush?.();
    cancelFlush = undefined;
    const sentMs = clock();
    const { probe, ...request } = composeAsk(sentMs);
    counts.asks += 1;
    let answer: StoreAnswer;
    try {
      answer = await options.admit({ ...request, probe });
      if (answer.kind === "unset") {
        await options.configure();
        restore(request);
      }
    } catch (thrown) {
      // Whether it was counted nobody knows; counted twice would be worse than not at all.
      asking = false;
      options.onError(ensureError(thrown));
      redisAway();
      return;
    }
    asking = false;
    awayMs = 0;
    if (answer.kind === "answer") take(answer, request.want, sentMs);
    pump();
  }

  function composeAsk(nowMs: number): AdmitAsk {
    const report = tally.take(generation);
    const next = line.demand(nowMs);
    const ahead = isBinding ? 0 : predicted(nowMs);
    const wanted = line.size > 0 ? missing(nowMs) : 0;
    const isPrefetch = next === undefined;
    const want = Math.min(
      MAX_LEASE,
      Math.max(0, wanted) + Math.max(0, ahead - (isPrefetch ? shelf.left(nowMs) : 0)),
    );
    const first = line.first(nowMs);
    const probe =
      first !== undefined && mode !== "closed" && mayProbe(first.call)
        ? `${options.workerId}/${++tickets}`
        : "";
    const sent = verdict;
    verdict = undefined;
    return {
      worker: options.workerId,
      runId: options.runId(),
      ...report,
      retryAfterUs: report.retryAfterMs * 1_000,
      ticket: sent?.ticket ?? "",
      verdict: sent?.verdict ?? "",
      want: mode === "closed" ? want : 0,
      need: want === 0 ? 0 : Math.min(want, isPrefetch || wanted <= 0 ? 1 : next.need),
      // What is fetched ahead must not eat what is kept for higher classes.
      floor: next?.floor ?? LARGEST_FLOOR,
      probe,
      random: random(),
    };
  }

  function restore(request: Omit<AdmitAsk, "probe">): void {
    const { ok, failed, trailing, slow, throttled, retryAfterUs } = request;
    tally.restore({
      generation,
      ok,
      failed,
      trailing,
      slow,
      throttled,
      retryAfterMs: retryAfterUs / 1_000,
    });
  }

  function take(
    answer: Extract<StoreAnswer, { kind: "answer" }>,
    want: number,
    sentMs: number,
  ): void {
    const nowMs = clock();
    live = answer.live;
    rate = answer.ratePerSecond;
    if (answer.transition !== undefined) options.onTransition(answer.transition);
    if (answer.revision !== revision) {
      revision = answer.revision;
      options.onRevision(revision);
    }
    moveTo({
      mode: answer.mode,
      generation: answer.generation,
      waitMs: answer.mode === "closed" ? 0 : answer.waitUs / 1_000,
    });
    // An answer that was overtaken by news of a later generation grants nothing.
    if (answer.generation !== generation) return;
    if (answer.ticket !== "") {
      startProbe(answer.ticket);
      return;
    }
    if (mode !== "closed") {
      rejectWaiting();
      return;
    }
    if (want === 0) return;
    isBinding = answer.granted < want || answer.waitUs > 0;
    const waitMs = answer.waitUs / 1_000;
    if (answer.granted === 0) {
      askAgainMs = nowMs + waitMs * (1 + 0.1 * random());
      return;
    }
    lastGrant = answer.granted;
    askAgainMs = -Infinity;
    const lease = {
      tokens: answer.granted,
      fromMs: nowMs + waitMs,
      untilMs: sentMs + waitMs + limits.tokenTtlMs,
      generation,
    };
    shelf.put(lease);
    deadOnArrival = lease.untilMs <= lease.fromMs ? deadOnArrival + 1 : 0;
    if (deadOnArrival === 5) {
      options.onError(
        new KonvergeError(
          "redis_unavailable",
          `Redis needs ${Math.ceil(nowMs - sentMs)} ms for an answer, longer than a token lives (tokenTtlMs ${limits.tokenTtlMs}): raise tokenTtlMs, or bring Redis nearer`,
        ),
      );
    }
  }

  function startProbe(ticket: string): void {
    const first = line.first(clock());
    if (first === undefined) {
      // Whoever asked has gone; others need not wait for the ticket to expire.
      verdict = { ticket, verdict: "neutral" };
      void ask();
      return;
    }
    line.remove(first);
    first.resolve(permit(first.call, { generation, waitedMs: clock() - first.sinceMs, ticket }));
    rejectWaiting();
  }

  /** Keeps those that may still be the probe. */
  function rejectWaiting(keepsProbes = false): void {
    for (const waiter of line.drain()) {
      if (keepsProbes && mayProbe(waiter.call)) {
        line.add(waiter);
        continue;
      }
      counts.deferred += 1;
      waiter.reject(
        refuse(waiter.call, clock()) ??
          defer("another call probes whether the API server is back", 0),
      );
    }
  }

  function moveTo(news: BreakerNews): void {
    if (news.generation < generation) return;
    const isNew = news.generation > generation || news.mode !== mode;
    if (mode !== "closed" || news.mode !== "closed") untilMs = clock() + news.waitMs;
    if (!isNew) return;
    const isFirst = generation === 0;
    ({ mode, generation } = news);
    shelf.clear();
    lastGrant = 0;
    isBinding = true;
    askAgainMs = -Infinity;
    if (!isFirst || mode !== "closed") {
      if (mode !== "closed") local.clear();
      options.onBreaker(news);
    }
    if (mode === "closed") prober.stop();
    else {
      prober.arm();
      rejectWaiting(mode === "halfOpen");
    }
  }

  /** Redis does not answer: what waits goes on waiting, up to a limit; jobs live in the same Redis, so nothing new comes. */
  function redisAway(): void {
    const nowMs = clock();
    awayMs = Math.min(REDIS_AWAY_MS[1], Math.max(REDIS_AWAY_MS[0], awayMs * 2));
    askAgainMs = nowMs + awayMs * (0.75 + 0.5 * random());
    for (const waiter of line.drain()) {
      if (nowMs - waiter.sinceMs < LONGEST_WAIT_MS) line.add(waiter);
      else waiter.reject(defer("Redis, which keeps the guard, does not answer", 1_000));
    }
    if (line.size > 0) {
      cancelTimer();
      wake(askAgainMs - nowMs);
    } else if (tally.size > 0) {
      cancelFlush ??= schedule(FLUSH_MS * 4, () => {
        cancelFlush = undefined;
        void ask();
      });
    }
  }
}

const WHY_LOCAL: Readonly<Record<Exclude<Health["kind"], "well">, string>> = {
  doubtful: "every call of this worker failed lately",
  unwell: "this worker cannot reach the API server, though others can",
  unauthorized: "the API server refuses this worker's credentials (401)",
};

/** A dear call may not cost more than the smallest bucket of the lowest class holds, or it would never be sent. */
function costOf({ cost = 1 }: GateCall, { burst, ratePerSecond, tokenTtlMs }: GuardLimits): number {
  const most = Math.floor((1 - LARGEST_FLOOR) * (burst - (ratePerSecond * tokenTtlMs) / 1_000));
  return Math.max(1, Math.min(Math.ceil(cost), most));
}
