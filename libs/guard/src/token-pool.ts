import {
  BREAKER,
  defined,
  ensureError,
  KonvergeError,
  TOKEN_RANK,
  type AdmitOptions,
  type AdmitRequest,
  type CallResult,
  type GateCall,
  type Permit,
} from "@konverge/core";
import { AskComposer } from "./ask-composer.ts";
import { createAskSchedule } from "./ask-schedule.ts";
import { createBreakerView, type BreakerUpdate, type BreakerView } from "./breaker-view.ts";
import { costOf } from "./call-cost.ts";
import { createCallReports, type CallReports } from "./call-reports.ts";
import { EarliestTimer } from "./earliest-timer.ts";
import { createFlightLimit, type FlightLimit } from "./flight-limit.ts";
import { LeaseDelays } from "./lease-delays.ts";
import type { Health } from "./local-health.ts";
import { PROBE_DEADLINE_MS } from "./prober.ts";
import { classifyResult, isSlow } from "./result-class.ts";
import type { StoreAnswer } from "./scripts/admit.ts";
import { createTokenDemand, type TokenDemand } from "./token-demand.ts";
import { createTokenLeases } from "./token-leases.ts";
import { Timers } from "./timers.ts";
import type { TokenPool, TokenPoolOptions } from "./token-pool-options.ts";
import { createWaitingLine, waitInLine } from "./waiting-line.ts";

/** Longest time that results wait for the next token request, in ms. */
const FLUSH_MS = 250;
/** First and longest pause between token requests while Redis is unavailable, in ms. */
const REDIS_AWAY_MS = [100, 1_000] as const;
/** Longest wait of a call without an abort signal while Redis is unavailable, in ms. */
const LONGEST_WAIT_MS = 30_000;
/** A probe that starts later could outlive its ticket and overlap with the next probe. */
const PROBE_BEGIN_MS = BREAKER.ticketUs / 1_000 - PROBE_DEADLINE_MS;

interface Given {
  readonly generation: number;
  readonly waitedMs: number;
  /** Present if the call is the probe. */
  readonly ticket?: string;
}

interface Ended extends Given {
  readonly slow: boolean;
  /** True if the limit of concurrent calls was reached. */
  readonly wasFull: boolean;
}

/**
 * The local side of a guard: keeps leased tokens, queues calls in order and reports their results, without polling. At
 * most one token request is in flight; with tokens at hand a call costs no round trip.
 */
export function createTokenPool(options: TokenPoolOptions): TokenPool {
  return new ProcessTokenPool(options);
}

class ProcessTokenPool implements TokenPool {
  readonly counts = { asks: 0, permits: 0, deferred: 0 };
  readonly #timers: Timers;
  readonly #options: TokenPoolOptions;
  readonly #line = createWaitingLine();
  readonly #leases = createTokenLeases();
  readonly #reports: CallReports;
  readonly #flights: FlightLimit;
  readonly #demand: TokenDemand;
  readonly #breaker: BreakerView;
  /** Live workers and calls per second of the fleet, as of the last answer. */
  #live = 1;
  #rate: number;
  #revision = 0;
  /** Run ID of the Redis server that granted the leases. */
  #runId = "";
  #inFlight = 0;
  #asking = false;
  readonly #schedule = createAskSchedule();
  /** End of the last call, in ms of the clock. */
  #lastEndMs = -Infinity;
  /** True if successes are reported without delay. */
  #reportsSoon = true;
  #redisAwayMs = 0;
  #closed = false;
  #cancelTimer: () => void = () => undefined;
  readonly #composer: AskComposer;
  readonly #delays: LeaseDelays;
  readonly #flush: EarliestTimer;

  constructor(given: TokenPoolOptions) {
    this.#timers = new Timers(given.schedule);
    const options = { ...given, schedule: this.#timers.start };
    this.#options = options;
    this.#rate = options.limits.ratePerSecond;
    this.#reports = createCallReports(options.probe !== undefined);
    this.#flights = createFlightLimit(options.maxInFlight, options.clock());
    this.#demand = createTokenDemand({
      line: this.#line,
      leases: this.#leases,
      // The upper bound, not the adaptive limit: calls that become due together may briefly exceed the latter.
      room: () => options.maxInFlight - this.#inFlight,
      tokenTtlMs: options.limits.tokenTtlMs,
      nowMs: options.clock(),
    });
    this.#breaker = createBreakerView({
      ...options,
      probe: options.probe,
      failuresToPause: options.limits.breaker.failures,
      live: () => this.#live,
    });
    this.#composer = new AskComposer({
      options,
      line: this.#line,
      leases: this.#leases,
      reports: this.#reports,
      demand: this.#demand,
      breaker: this.#breaker,
    });
    this.#delays = new LeaseDelays(options.onError);
    this.#flush = new EarliestTimer(options, () => void this.#ask());
  }

  get breaker(): BreakerUpdate {
    return this.#breaker.news;
  }

  get health(): Health["kind"] {
    return this.#breaker.health;
  }

  get waitingByClass(): TokenPool["waitingByClass"] {
    return this.#line.byClass;
  }

  get waiting(): number {
    return this.#line.size;
  }

  get inFlight(): number {
    return this.#inFlight;
  }

  get ratePerSecond(): number {
    return this.#rate;
  }

  admit(call: GateCall, { signal, onWait }: AdmitOptions = {}): Promise<Permit> {
    return new Promise<Permit>((resolve, reject) => {
      signal?.throwIfAborted();
      const nowMs = this.#options.clock();
      const refusal = this.#closed ? closedError() : this.#breaker.refuse(call);
      if (refusal !== undefined) {
        this.counts.deferred += 1;
        reject(refusal);
        return;
      }
      const cost = costOf(call, this.#options.limits);
      this.#checkRedis();
      const isFree = this.#line.size === 0 && this.#mayBegin(call, nowMs);
      const taken = isFree ? this.#takeTokens(call, cost, nowMs) : undefined;
      if (taken === undefined) {
        if (this.#line.size === 0) this.#noteReturn(nowMs);
        const waiter = { call, cost, sinceMs: nowMs, resolve, reject };
        const raise = waitInLine(this.#line, waiter, signal);
        onWait?.({
          raise: (priority) => {
            if (raise(priority)) this.#pump();
          },
        });
      } else resolve(this.#permit(call, { ...taken, waitedMs: 0 }));
      this.#pump();
    });
  }

  withoutCredentials(error: KonvergeError): KonvergeError {
    this.counts.deferred += 1;
    return this.#breaker.noteNoCredentials(error);
  }

  learn(update: BreakerUpdate): void {
    if (!this.#breaker.learn(update)) return;
    this.#leases.clear();
    this.#demand.reset();
    this.#schedule.reset();
    if (update.mode === "closed") this.#pump();
    else this.#rejectWaiting((call) => update.mode === "halfOpen" && this.#breaker.mayProbe(call));
  }

  refresh(): void {
    this.#redisAwayMs = 0;
    this.#schedule.reset();
    this.#pump();
  }

  close(): void {
    this.#closed = true;
    this.#timers.close();
    for (const waiter of this.#line.drain()) waiter.reject(closedError());
  }

  #mayBegin(call: GateCall | undefined, nowMs: number): boolean {
    return this.#hasRoom(call, nowMs) && this.#breaker.mode === "closed";
  }

  #noteReturn(nowMs: number): void {
    if (this.#inFlight > 0) this.#demand.noteReturn(0);
    else if (this.#lastEndMs > -Infinity) this.#demand.noteReturn(nowMs - this.#lastEndMs);
  }

  /** One critical call may exceed the limit: a leader renews its Lease while other calls hang. */
  #hasRoom(call: GateCall | undefined, nowMs: number): boolean {
    const extra = call?.priority === "critical" ? 1 : 0;
    return this.#inFlight < this.#flights.at(nowMs) + extra;
  }

  #permit({ verb }: GateCall, given: Given): Permit {
    this.#inFlight += 1;
    this.#flights.noteBegin(this.#inFlight);
    this.counts.permits += 1;
    this.#demand.notePermit();
    const startedMs = this.#options.clock();
    let isSettled = false;
    return {
      waitedMs: given.waitedMs,
      settle: (result) => {
        if (isSettled) return;
        isSettled = true;
        const nowMs = this.#options.clock();
        const wasFull = this.#inFlight >= this.#flights.at(nowMs);
        this.#inFlight -= 1;
        this.#lastEndMs = nowMs;
        this.#noteEnd(result, { ...given, slow: isSlow(verb, nowMs - startedMs), wasFull });
        this.#pump();
      },
    };
  }

  #noteEnd(result: CallResult, { generation, ticket, slow, wasFull }: Ended): void {
    const kind = classifyResult(result);
    this.#breaker.noteEnd(kind);
    if (kind === "ok" && !slow) this.#flights.noteOk(wasFull);
    const nowMs = this.#options.clock();
    this.#reports.note({ result, kind, generation, slow, nowMs, ...defined({ ticket }) });
    const isUrgent = this.#reports.isFailing || kind === "throttled";
    if (ticket !== undefined || isUrgent) void this.#ask();
    else this.#flushResults();
  }

  /** Admits waiting calls, requests missing tokens, and otherwise sets the one timer. */
  #pump(): void {
    if (this.#closed) return;
    this.#cancelTimer();
    this.#checkRedis();
    const nowMs = this.#options.clock();
    this.#serve(nowMs);
    const first = this.#line.first(nowMs);
    if (this.#breaker.mode === "closed" && !this.#hasRoom(first?.call, nowMs)) return;
    const asks =
      first === undefined ? this.#demand.isRunningLow(nowMs) : this.#demand.isLacking(nowMs);
    const rank = this.#composer.mayReturn(first)
      ? TOKEN_RANK.critical
      : this.#line.demand(nowMs)?.rank;
    const askMs = this.#schedule.nextMs(rank ?? TOKEN_RANK.resync);
    if (asks && nowMs >= askMs) return void this.#ask();
    const times = [asks ? askMs : undefined];
    // The timer fires when promised tokens are due, when tokens expire, and when a call ages.
    if (first !== undefined) times.push(this.#leases.nextMs(nowMs), this.#line.agingMs(nowMs));
    const nextMs = Math.min(...times.map((ms) => ms ?? Infinity));
    if (nextMs < Infinity) this.#wake(nextMs - nowMs);
  }

  /** Drops the tokens of another Redis server, or of a lost connection: their grants may be lost. */
  #checkRedis(): void {
    const runId = this.#options.runId();
    if (runId === this.#runId) return;
    this.#runId = runId;
    this.#forget();
  }

  #forget(): void {
    this.#leases.clear();
    this.#composer.forget();
  }

  #serve(nowMs: number): void {
    for (;;) {
      const next = this.#line.first(nowMs);
      if (next === undefined || !this.#mayBegin(next.call, nowMs)) return;
      const taken = this.#takeTokens(next.call, next.cost, nowMs);
      if (taken === undefined) return;
      this.#line.remove(next);
      next.resolve(this.#permit(next.call, { ...taken, waitedMs: nowMs - next.sinceMs }));
    }
  }

  #takeTokens({ priority }: GateCall, cost: number, nowMs: number) {
    return this.#leases.take(cost, nowMs, priority === "critical");
  }

  #wake(ms: number): void {
    // A timer may fire a little early.
    this.#cancelTimer = this.#options.schedule(Math.max(1, Math.ceil(ms)), () => this.#pump());
  }

  /** Reports soon. Successes of a healthy fleet that waits for its turn join the next request. */
  #flushResults(): void {
    if (!this.#reports.hasResults) return;
    const nowMs = this.#options.clock();
    const isPrompt = this.#reportsSoon || this.#reports.hasTrouble;
    const turnMs = isPrompt ? 0 : this.#schedule.nextMs(TOKEN_RANK.resync) - nowMs;
    this.#flush.in(Math.max(FLUSH_MS, turnMs));
  }

  async #ask(): Promise<void> {
    if (this.#asking || this.#closed) return;
    if (!this.#options.reachable()) return this.#redisAway();
    this.#asking = true;
    this.#flush.cancel();
    const sentMs = this.#options.clock();
    const request = this.#composer.compose(sentMs);
    this.counts.asks += 1;
    try {
      const answer = await this.#options.admit(request);
      if (answer.kind === "unset") {
        const isLoss = this.#breaker.generation > 0;
        this.#forget();
        await this.#options.configure(isLoss);
        this.#reports.restore(request, this.#breaker.generation);
      } else {
        this.#take(answer, request, sentMs);
      }
      this.#redisAwayMs = 0;
      this.#asking = false;
    } catch (thrown) {
      // The report may or may not have been counted; counting it twice would be worse than losing it.
      this.#asking = false;
      this.#options.onError(ensureError(thrown));
      return this.#redisAway();
    }
    // Results that arrived meanwhile were not part of this request.
    if (this.#reports.isUrgent) return void this.#ask();
    this.#flushResults();
    this.#pump();
  }

  #take(answer: FleetAnswer, { want, rank, turn }: AdmitRequest, sentMs: number): void {
    const nowMs = this.#options.clock();
    const waitMs = answer.waitUs / 1_000;
    this.#composer.noteAnswer(answer.atUs, sentMs);
    this.#live = answer.live;
    this.#reportsSoon = answer.reportsSoon;
    this.#rate = answer.ratePerSecond;
    if (answer.transition !== undefined) this.#options.onTransition(answer.transition);
    if (answer.revision !== this.#revision) {
      this.#revision = answer.revision;
      this.#options.onRevision(this.#revision);
    }
    const { mode, generation } = answer;
    this.learn({ mode, generation, waitMs: mode === "closed" ? 0 : waitMs });
    // An answer older than the current breaker generation grants nothing.
    if (generation !== this.#breaker.generation) return;
    if (answer.ticket !== "") return this.#startProbe(answer.ticket, sentMs);
    if (mode !== "closed") return this.#rejectWaiting();
    if (want === 0) return;
    this.#demand.noteGrant(answer.granted, want, waitMs);
    // A turn is this worker's own; other waits get jitter, so that workers do not return together.
    const jitter = answer.turnUs > 0 ? 1 : 1 + 0.1 * this.#options.random();
    const againMs = answer.granted === 0 ? waitMs : answer.turnUs / 1_000;
    this.#schedule.noteAnswer(rank, nowMs + againMs * jitter);
    if (answer.granted === 0) return;
    const untilMs = sentMs + waitMs + answer.ttlMs;
    this.#leases.put({
      tokens: answer.granted,
      fromMs: nowMs + waitMs,
      untilMs,
      generation,
      isTurn: turn !== "none" && rank !== TOKEN_RANK.critical,
    });
    this.#delays.note(nowMs - sentMs, answer.ttlMs);
  }

  #startProbe(ticket: string, sentMs: number): void {
    const nowMs = this.#options.clock();
    const first = this.#line.first(nowMs);
    if (first === undefined || nowMs - sentMs > PROBE_BEGIN_MS) {
      // The waiting call is gone or the answer is late; return the ticket so that another worker can probe.
      this.#reports.returnTicket(ticket);
      return this.#rejectWaiting();
    }
    this.#line.remove(first);
    const { generation } = this.#breaker;
    first.resolve(
      this.#permit(first.call, { generation, waitedMs: nowMs - first.sinceMs, ticket }),
    );
    this.#rejectWaiting();
  }

  #rejectWaiting(keeps: (call: GateCall) => boolean = () => false): void {
    for (const waiter of this.#line.drain()) {
      if (keeps(waiter.call)) this.#line.add(waiter);
      else {
        this.counts.deferred += 1;
        waiter.reject(
          this.#breaker.refuse(waiter.call) ?? this.#breaker.defer("another call is the probe", 0),
        );
      }
    }
  }

  /** Without Redis, calls keep waiting up to a limit. Jobs are in the same Redis, so no new ones arrive. */
  #redisAway(): void {
    const nowMs = this.#options.clock();
    this.#redisAwayMs = Math.min(
      REDIS_AWAY_MS[1],
      Math.max(REDIS_AWAY_MS[0], this.#redisAwayMs * 2),
    );
    const againMs = nowMs + this.#redisAwayMs * (0.75 + 0.5 * this.#options.random());
    this.#schedule.hold(againMs);
    for (const waiter of this.#line.drain()) {
      if (nowMs - waiter.sinceMs < LONGEST_WAIT_MS) this.#line.add(waiter);
      else
        waiter.reject(this.#breaker.defer("Redis is unavailable, so no tokens are granted", 1_000));
    }
    this.#cancelTimer();
    if (this.#line.size > 0) this.#wake(againMs - nowMs);
    else if (!this.#reports.isEmpty) this.#flush.in(this.#redisAwayMs);
  }
}

type FleetAnswer = Extract<StoreAnswer, { kind: "answer" }>;

const closedError = () => new KonvergeError("cancelled", "the guard is closed");
