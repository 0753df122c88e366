import {
  BREAKER,
  bucketSize,
  ensureError,
  KonvergeError,
  LARGEST_FLOOR,
  type AdmitRequest,
  type CallResult,
  type Gate,
  type GateCall,
  type GuardLimits,
  type Permit,
} from "@konverge/core";
import { createBreakerView, type BreakerUpdate } from "./breaker-view.ts";
import { createFlightLimit } from "./flight-limit.ts";
import type { StoreAnswer } from "./scripts/admit.ts";
import type { Transition } from "./transition.ts";
import { createTokenLeases } from "./token-leases.ts";
import { createOutcomeTally, MAX_RETRY_AFTER_MS } from "./outcome-tally.ts";
import type { Health } from "./local-health.ts";
import { PROBE_DEADLINE_MS } from "./prober.ts";
import { classifyResult, isSlow } from "./result-class.ts";
import { createTokenDemand } from "./token-demand.ts";
import { createWaitingLine, waitInLine } from "./waiting-line.ts";

export interface TokenPoolOptions {
  readonly workerId: string;
  readonly limits: GuardLimits;
  /** Sends one ask to Redis. */
  readonly admit: (ask: AdmitRequest) => Promise<StoreAnswer>;
  /** Tells Redis the limits, when it knows none. */
  readonly configure: () => Promise<void>;
  /** False while nothing can be sent. */
  readonly reachable: () => boolean;
  /** Of the Redis at the other end; empty when unknown. */
  readonly runId: () => string;
  /** Most calls at once in this process; how many of them are used follows what is needed. */
  readonly maxInFlight: number;
  /** Makes one read through this gate, as a call with `probe` set. Without it any call may be the probe. */
  readonly probe?: ((signal: AbortSignal) => Promise<unknown>) | undefined;
  /** The breaker moved, as seen from here. */
  readonly onBreaker: (news: BreakerUpdate) => void;
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

export interface TokenPool extends Gate {
  readonly breaker: BreakerUpdate;
  readonly health: Health["kind"];
  readonly waiting: number;
  readonly inFlight: number;
  /** Of the whole fleet, as last told. */
  readonly ratePerSecond: number;
  /** Round trips to Redis, and calls permitted, since the start. */
  readonly counts: { readonly asks: number; readonly permits: number; readonly deferred: number };
  /** Told by another way than an answer, such as a message of another process. */
  learn(news: BreakerUpdate): void;
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
/** A probe that begins later could last longer than its ticket, and meet the next one. */
const PROBE_BEGIN_MS = BREAKER.ticketUs / 1_000 - PROBE_DEADLINE_MS;

interface Given {
  readonly generation: number;
  readonly waitedMs: number;
  /** The call is the probe. */
  readonly ticket?: string;
}

interface Ended extends Given {
  readonly slow: boolean;
  /** No further call could have begun. */
  readonly wasFull: boolean;
}

/**
 * The local side of a guard: keeps leased tokens, lets calls wait in order, reports how they ended, and never polls. One
 * ask is under way at a time; with tokens at hand a call costs no round trip.
 */
export function createTokenPool(options: TokenPoolOptions): TokenPool {
  const { clock, random, schedule, limits } = options;
  const line = createWaitingLine();
  const leases = createTokenLeases();
  const tally = createOutcomeTally();
  const flights = createFlightLimit(options.maxInFlight, clock());
  const counts = { asks: 0, permits: 0, deferred: 0 };
  let live = 1;
  let rate = limits.ratePerSecond;
  let revision = 0;
  let inFlight = 0;
  let asking = false;
  let askAgainMs = -Infinity;
  let awayMs = 0;
  let deadOnArrival = 0;
  let verdict: (Pick<AdmitRequest, "ticket" | "verdict"> & { retryAfterMs: number }) | undefined;
  let tickets = 0;
  let closed = false;
  let cancelTimer: () => void = () => undefined;
  let cancelFlush: (() => void) | undefined;
  const demand = createTokenDemand({
    line,
    leases,
    // Not the limit that follows the need: a batch that is due together may exceed it for some milliseconds.
    room: () => options.maxInFlight - inFlight,
    tokenTtlMs: limits.tokenTtlMs,
    nowMs: clock(),
  });
  const breaker = createBreakerView({ ...options, probe: options.probe, live: () => live });

  return {
    admit(call, { signal } = {}) {
      return new Promise<Permit>((resolve, reject) => {
        signal?.throwIfAborted();
        const nowMs = clock();
        const refusal = closed ? closedError() : breaker.refuse(call);
        if (refusal !== undefined) {
          counts.deferred += 1;
          reject(refusal);
          return;
        }
        const cost = costOf(call, limits);
        const isFree = line.size === 0 && inFlight < flights.at(nowMs) && breaker.mode === "closed";
        const taken = isFree ? leases.take(cost, nowMs) : undefined;
        if (taken === undefined) {
          waitInLine(line, { call, cost, sinceMs: nowMs, resolve, reject }, signal);
        } else resolve(permit(call, { ...taken, waitedMs: 0 }));
        pump();
      });
    },
    get breaker() {
      return breaker.news;
    },
    get health() {
      return breaker.health;
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
    learn,
    refresh() {
      awayMs = 0;
      askAgainMs = -Infinity;
      pump();
    },
    close() {
      closed = true;
      cancelTimer();
      cancelFlush?.();
      breaker.stop();
      for (const waiter of line.drain()) waiter.reject(closedError());
    },
  };

  function permit({ verb }: GateCall, given: Given): Permit {
    inFlight += 1;
    flights.noteBegin(inFlight);
    counts.permits += 1;
    demand.notePermit();
    const startedMs = clock();
    let isSettled = false;
    return {
      waitedMs: given.waitedMs,
      settle(result) {
        if (isSettled) return;
        isSettled = true;
        const nowMs = clock();
        const wasFull = inFlight >= flights.at(nowMs);
        inFlight -= 1;
        noteEnd(result, { ...given, slow: isSlow(verb, nowMs - startedMs), wasFull });
        pump();
      },
    };
  }

  function noteEnd(result: CallResult, { generation, ticket, slow, wasFull }: Ended): void {
    const kind = classifyResult(result);
    breaker.noteEnd(kind);
    const retryAfterMs = result.kind === "response" ? (result.retryAfterMs ?? 0) : 0;
    if (kind === "ok" && !slow) flights.noteOk(wasFull);
    if (ticket !== undefined) {
      // Our own probe is given up only at its deadline.
      const isLate = result.kind === "aborted" && options.probe !== undefined;
      verdict = {
        ticket,
        verdict: isLate ? "failed" : kind === "ok" || kind === "failed" ? kind : "neutral",
        retryAfterMs: Math.min(retryAfterMs, MAX_RETRY_AFTER_MS),
      };
      void ask();
      return;
    }
    tally.note({ generation, class: kind, slow, retryAfterMs });
    if (tally.size === 0) return;
    if (tally.trailing >= URGENT_FAILURES || kind === "throttled") void ask();
    else flushIn(FLUSH_MS);
  }

  /** Serves who can be served, asks for what is missing, and otherwise sets the one timer. */
  function pump(): void {
    if (closed) return;
    cancelTimer();
    const nowMs = clock();
    serve(nowMs);
    if (inFlight >= flights.at(nowMs) && breaker.mode === "closed") return;
    // While tokens are promised, some more waiters go with the next ask: each for itself would cost a round trip a call.
    const asks =
      line.size === 0 ? demand.isRunningLow(nowMs) : demand.missing(nowMs) > leases.left(nowMs);
    if (asks && nowMs >= askAgainMs) return void ask();
    const dueMs = line.size > 0 ? leases.nextMs(nowMs) : undefined;
    // Whoever is refused more must not sleep through what it was promised.
    const nextMs = Math.min(dueMs ?? Infinity, asks ? askAgainMs : Infinity);
    if (nextMs < Infinity) wake(nextMs - nowMs);
  }

  function serve(nowMs: number): void {
    while (breaker.mode === "closed" && inFlight < flights.at(nowMs)) {
      const next = line.first(nowMs);
      const taken = next === undefined ? undefined : leases.take(next.cost, nowMs);
      if (next === undefined || taken === undefined) return;
      line.remove(next);
      next.resolve(permit(next.call, { ...taken, waitedMs: nowMs - next.sinceMs }));
    }
  }

  function wake(ms: number): void {
    // A timer may fire a little early.
    cancelTimer = schedule(Math.max(1, Math.ceil(ms)), pump);
  }

  function flushIn(ms: number): void {
    cancelFlush ??= schedule(ms, () => {
      cancelFlush = undefined;
      void ask();
    });
  }

  async function ask(): Promise<void> {
    if (asking || closed) return;
    if (!options.reachable()) return redisAway();
    asking = true;
    cancelFlush?.();
    cancelFlush = undefined;
    const sentMs = clock();
    const request = composeAsk(sentMs);
    counts.asks += 1;
    try {
      const answer = await options.admit(request);
      if (answer.kind === "unset") {
        await options.configure();
        restore(request);
      } else {
        take(answer, request.want, sentMs);
      }
      awayMs = 0;
      asking = false;
    } catch (thrown) {
      // Whether it was counted nobody knows; counted twice would be worse than not at all.
      asking = false;
      options.onError(ensureError(thrown));
      return redisAway();
    }
    // What ended meanwhile could not ride on this ask.
    if (verdict !== undefined || tally.trailing >= URGENT_FAILURES) return void ask();
    if (tally.size > 0) flushIn(FLUSH_MS);
    pump();
  }

  function composeAsk(nowMs: number): AdmitRequest {
    const { retryAfterMs, ...report } = tally.take(breaker.generation);
    const sent = verdict;
    verdict = undefined;
    return {
      worker: options.workerId,
      runId: options.runId(),
      ...report,
      retryAfterUs: Math.max(retryAfterMs, sent?.retryAfterMs ?? 0) * 1_000,
      ticket: sent?.ticket ?? "",
      verdict: sent?.verdict ?? "",
      ...composeDemand(nowMs),
      random: random(),
    };
  }

  function composeDemand(nowMs: number): Pick<AdmitRequest, "want" | "need" | "floor" | "probe"> {
    const first = line.first(nowMs);
    if (breaker.mode !== "closed") {
      const mayProbe = first !== undefined && breaker.mayProbe(first.call);
      const probe = mayProbe ? `${options.workerId}/${++tickets}` : "";
      return { want: 0, need: 0, floor: 0, probe };
    }
    return { ...demand.compose(nowMs), probe: "" };
  }

  function restore({ ok, failed, trailing, slow, throttled, retryAfterUs }: AdmitRequest): void {
    const { generation } = breaker;
    const retryAfterMs = retryAfterUs / 1_000;
    tally.restore({ generation, ok, failed, trailing, slow, throttled, retryAfterMs });
  }

  function take(answer: FleetAnswer, want: number, sentMs: number): void {
    const nowMs = clock();
    const waitMs = answer.waitUs / 1_000;
    live = answer.live;
    rate = answer.ratePerSecond;
    if (answer.transition !== undefined) options.onTransition(answer.transition);
    if (answer.revision !== revision) {
      revision = answer.revision;
      options.onRevision(revision);
    }
    const { mode, generation } = answer;
    learn({ mode, generation, waitMs: mode === "closed" ? 0 : waitMs });
    // An answer that was overtaken by news of a later generation grants nothing.
    if (generation !== breaker.generation) return;
    if (answer.ticket !== "") return startProbe(answer.ticket, sentMs);
    if (mode !== "closed") return rejectWaiting();
    if (want === 0) return;
    demand.noteGrant(answer.granted, want, waitMs);
    askAgainMs = answer.granted === 0 ? nowMs + waitMs * (1 + 0.1 * random()) : -Infinity;
    if (answer.granted === 0) return;
    const untilMs = sentMs + waitMs + limits.tokenTtlMs;
    leases.put({ tokens: answer.granted, fromMs: nowMs + waitMs, untilMs, generation });
    noteDelay(nowMs - sentMs);
  }

  /** Tokens that are dead when they arrive help nobody, and would be asked for for ever. */
  function noteDelay(tookMs: number): void {
    deadOnArrival = tookMs >= limits.tokenTtlMs ? deadOnArrival + 1 : 0;
    if (deadOnArrival !== 5) return;
    const why = `Redis needs ${Math.ceil(tookMs)} ms for an answer, longer than a token lives (tokenTtlMs ${limits.tokenTtlMs})`;
    options.onError(
      new KonvergeError("redis_unavailable", `${why}: raise tokenTtlMs, or bring Redis nearer`),
    );
  }

  function startProbe(ticket: string, sentMs: number): void {
    const nowMs = clock();
    const first = line.first(nowMs);
    if (first === undefined || nowMs - sentMs > PROBE_BEGIN_MS) {
      // Whoever asked has gone, or slept: others need not wait for the ticket to expire.
      verdict = { ticket, verdict: "neutral", retryAfterMs: 0 };
      return rejectWaiting();
    }
    line.remove(first);
    const { generation } = breaker;
    first.resolve(permit(first.call, { generation, waitedMs: nowMs - first.sinceMs, ticket }));
    rejectWaiting();
  }

  function rejectWaiting(keeps: (call: GateCall) => boolean = () => false): void {
    for (const waiter of line.drain()) {
      if (keeps(waiter.call)) line.add(waiter);
      else {
        counts.deferred += 1;
        waiter.reject(breaker.refuse(waiter.call) ?? breaker.defer("another call is the probe", 0));
      }
    }
  }

  function learn(news: BreakerUpdate): void {
    if (!breaker.learn(news)) return;
    leases.clear();
    demand.reset();
    askAgainMs = -Infinity;
    if (news.mode === "closed") pump();
    else rejectWaiting((call) => news.mode === "halfOpen" && breaker.mayProbe(call));
  }

  /** Redis does not answer: what waits goes on waiting, up to a limit; jobs live in the same Redis, so nothing new comes. */
  function redisAway(): void {
    const nowMs = clock();
    awayMs = Math.min(REDIS_AWAY_MS[1], Math.max(REDIS_AWAY_MS[0], awayMs * 2));
    askAgainMs = nowMs + awayMs * (0.75 + 0.5 * random());
    for (const waiter of line.drain()) {
      if (nowMs - waiter.sinceMs < LONGEST_WAIT_MS) line.add(waiter);
      else waiter.reject(breaker.defer("Redis, which keeps the guard, does not answer", 1_000));
    }
    cancelTimer();
    if (line.size > 0) wake(askAgainMs - nowMs);
    else if (tally.size > 0 || verdict !== undefined) flushIn(awayMs);
  }
}

type FleetAnswer = Extract<StoreAnswer, { kind: "answer" }>;

const closedError = () => new KonvergeError("cancelled", "the guard is closed");

/** A dear call may not cost more than the smallest bucket of the lowest class holds, or it would never be sent. */
function costOf({ cost = 1 }: GateCall, limits: GuardLimits): number {
  const most = Math.floor((1 - LARGEST_FLOOR) * bucketSize(limits));
  return Math.max(1, Math.min(Math.ceil(cost), most));
}
