import {
  BREAKER,
  defined,
  MAX_LEASE,
  TOKEN_RANK,
  type AdmitResponse,
  type AdmitRequest,
  type GuardLimits,
  type OpeningReason,
} from "@konverge/core";
import type { GuardState } from "./guard-state.ts";
import { openDurationUs, openingReason } from "./opening-rules.ts";
import { emptiedTat, leaseTokens, rescaledTat, turnUs } from "./token-lease.ts";
import { aheadOf, book, type Order } from "./token-order.ts";

type Draft = { -readonly [Field in keyof GuardState]: GuardState[Field] } & {
  live: Map<string, number>;
  failing: Map<string, number>;
} & Order;

export interface Admission {
  readonly state: GuardState;
  readonly answer: AdmitResponse;
  /** The reason if the breaker opened in this step. */
  readonly opened?: OpeningReason | "probe";
}

/**
 * The state of a new cluster, or after a data loss: closed, with an empty bucket. After a loss, tokens may have been promised
 * for the longest wait.
 */
export function newGuardState(
  limits: GuardLimits,
  nowUs: number,
  runId: string,
  isLoss = false,
): GuardState {
  const { ratePerSecond } = limits;
  const promisedUs = isLoss ? nowUs + limits.maxWaitMs * 1_000 : 0;
  return {
    mode: "closed",
    generation: 1,
    untilUs: 0,
    openings: 0,
    closedUs: 0,
    ticket: "",
    ticketUntilUs: 0,
    total: 0,
    failed: 0,
    slow: 0,
    throttled: 0,
    windowUs: nowUs,
    consecutive: 0,
    tatUs: emptiedTat(limits, ratePerSecond, Math.max(nowUs, promisedUs)),
    promisedUs,
    ratePerSecond,
    cutUs: 0,
    raisedUs: nowUs,
    pausedUntilUs: 0,
    strainedUs: 0,
    lastUs: nowUs,
    skewUs: 0,
    runId,
    live: new Map(),
    failing: new Map(),
    order: new Map(),
    booked: [0, 0, 0, 0],
  };
}

/**
 * One step of the guard: takes a worker's report, moves the breaker, adapts the rate, and leases tokens. Pure; the
 * script `admit` does the same to a hash in Redis.
 */
export function admit(
  before: GuardState,
  ask: AdmitRequest,
  limits: GuardLimits,
  timeUs: number,
): Admission {
  const state: Draft = {
    ...before,
    live: new Map(before.live),
    failing: new Map(before.failing),
    order: new Map(before.order),
    booked: [...before.booked],
  };
  const nowUs = settleClock(state, ask, timeUs);
  if (ask.runId !== "" && ask.runId !== state.runId) {
    if (state.runId !== "") {
      state.tatUs = Math.max(state.tatUs, emptied(state, limits, nowUs));
    }
    state.runId = ask.runId;
  }
  // A worker has seen later transitions, which were lost (flush, failover), possibly with grants. The next generation
  // voids all leases; without it, workers would treat every answer as outdated forever.
  if (ask.generation > state.generation) {
    state.generation = ask.generation + 1;
    state.tatUs = Math.max(state.tatUs, emptied(state, limits, nowUs));
  }

  let opened: Admission["opened"];
  if (state.mode === "closed" && ask.want > 0) state.live.set(ask.worker, nowUs);
  if (state.mode === "closed" && ask.generation === state.generation) {
    opened = takeReport(state, ask, limits, nowUs);
  } else if (
    state.mode === "halfOpen" &&
    ask.ticket !== "" &&
    ask.ticket === state.ticket &&
    nowUs < state.ticketUntilUs
  ) {
    opened = takeVerdict(state, ask, limits, nowUs);
  }
  if (state.mode === "open" && nowUs >= state.untilUs) {
    state.mode = "halfOpen";
    state.generation += 1;
    state.ticket = "";
    state.ticketUntilUs = 0;
  }
  const granted = grant(state, ask, limits, nowUs);
  const answer: AdmitResponse = {
    atUs: nowUs,
    mode: state.mode,
    generation: state.generation,
    ...granted,
    ratePerSecond: state.ratePerSecond,
    ttlMs: limits.tokenTtlMs,
    live: state.live.size,
    reportsSoon:
      state.ratePerSecond < limits.ratePerSecond ||
      [...state.failing.values()].some((atUs) => atUs > nowUs - BREAKER.quorumUs),
  };
  return { state, answer, ...defined({ opened }) };
}

/** Returns the time of an empty bucket, also when the last promised token is due. */
function emptied(state: Draft, limits: GuardLimits, atUs: number): number {
  return emptiedTat(limits, state.ratePerSecond, Math.max(atUs, state.promisedUs));
}

/**
 * Returns the time of the fleet's clock. It follows the clock of Redis, but does not step back, and does not pass by more than
 * the asking worker's own clock did since its last answer.
 */
function settleClock(
  state: Draft,
  { answeredUs, elapsedUs }: AdmitRequest,
  timeUs: number,
): number {
  const mostUs = answeredUs > 0 ? answeredUs + elapsedUs + BREAKER.clockSlackUs : Infinity;
  state.lastUs = Math.max(state.lastUs, Math.min(timeUs - state.skewUs, mostUs));
  state.skewUs = timeUs - state.lastUs;
  return state.lastUs;
}

/** Linear in the gap, so that both models are equal; with many reports it approximates an exponential decay. */
function decay(state: Draft, nowUs: number): void {
  const share = Math.max(0, 1 - (nowUs - state.windowUs) / BREAKER.windowUs);
  state.total *= share;
  state.failed *= share;
  state.slow *= share;
  state.throttled *= share;
  state.windowUs = nowUs;
}

function takeReport(
  state: Draft,
  ask: AdmitRequest,
  limits: GuardLimits,
  nowUs: number,
): Admission["opened"] {
  const { ok, failed, throttled, slow, late, worker, retryAfterUs } = ask;
  if (ok + failed + throttled + late === 0) return undefined;
  state.live.set(worker, nowUs);
  if (failed > 0) state.failing.set(worker, nowUs);
  else if (ok > 0 && (state.failing.get(worker) ?? 0) <= nowUs - BREAKER.failingUs) {
    state.failing.delete(worker);
  }
  expire(state.live, nowUs - BREAKER.quorumUs);
  expire(state.failing, nowUs - BREAKER.quorumUs);
  decay(state, nowUs);
  state.total += ok + failed + late;
  state.failed += failed;
  state.slow += slow;
  state.throttled += throttled;
  state.consecutive = ok > 0 ? ask.trailing : state.consecutive + failed;
  cutRate(state, ask, limits, nowUs);
  if (throttled > 0) {
    state.pausedUntilUs = Math.max(state.pausedUntilUs, nowUs + retryAfterUs);
    // Calls that waited during a pause must not start together after it.
    state.tatUs = Math.max(state.tatUs, emptied(state, limits, state.pausedUntilUs));
  }
  const isStrained =
    state.ratePerSecond <= limits.minRatePerSecond &&
    state.throttled >= BREAKER.strainedShare * (state.total + state.throttled);
  if (!isStrained) state.strainedUs = 0;
  else if (state.strainedUs === 0) state.strainedUs = nowUs;

  const reason = openingReason(state, limits.breaker, nowUs);
  if (reason === undefined) return undefined;
  // A 429 applies to all workers.
  if (reason !== "strained" && !hasQuorum(state)) return undefined;
  open(state, ask, limits, nowUs);
  return reason;
}

/** Workers with a network failure of their own must not decide for the fleet. */
const hasQuorum = ({ live, failing }: Draft) => 2 * failing.size > live.size;

function cutRate(state: Draft, ask: AdmitRequest, limits: GuardLimits, nowUs: number): void {
  const isFailing =
    ask.failed > 0 && state.failed >= BREAKER.cutFailedShare * state.total && hasQuorum(state);
  const isSlow = ask.slow > 0 && state.slow >= BREAKER.slowShare * state.total;
  if (ask.throttled === 0 && !isFailing && !isSlow) return;
  if (nowUs - state.cutUs < Math.max(BREAKER.cutEveryUs, ask.retryAfterUs)) return;
  const from = state.ratePerSecond;
  const to = Math.max(limits.minRatePerSecond, BREAKER.cutFactor * from);
  state.tatUs = rescaledTat(state, nowUs, { from, to });
  state.ratePerSecond = to;
  state.cutUs = nowUs;
  state.raisedUs = nowUs;
}

function takeVerdict(
  state: Draft,
  ask: AdmitRequest,
  limits: GuardLimits,
  nowUs: number,
): Admission["opened"] {
  state.ticket = "";
  // An inconclusive probe must not start the next one immediately.
  state.ticketUntilUs = nowUs + Math.max(limits.breaker.openMs * 1_000, ask.retryAfterUs);
  if (ask.verdict === "failed") {
    open(state, ask, limits, nowUs);
    return "probe";
  }
  if (ask.verdict === "ok") close(state, limits, nowUs);
  return undefined;
}

/** Workers without this update may still use promised tokens, so the probe starts one token after the last of them. */
function open(state: Draft, ask: AdmitRequest, limits: GuardLimits, nowUs: number): void {
  const again = state.mode === "halfOpen" || nowUs - state.closedUs < BREAKER.calmUs;
  state.openings = again ? state.openings + 1 : 1;
  state.mode = "open";
  state.generation += 1;
  const tokenUs = Math.min(limits.breaker.maxOpenMs * 1_000, Math.ceil(1e6 / limits.ratePerSecond));
  state.untilUs = Math.max(
    nowUs + openDurationUs(state.openings, limits.breaker, ask.retryAfterUs, ask.random),
    state.promisedUs + tokenUs,
  );
  state.ticket = "";
  state.ticketUntilUs = 0;
  state.order.clear();
  clearCounts(state);
}

/** Closes with an empty bucket and a low rate, so that waiting calls do not start together. */
function close(state: Draft, limits: GuardLimits, nowUs: number): void {
  state.mode = "closed";
  state.generation += 1;
  state.closedUs = nowUs;
  state.untilUs = 0;
  state.ticketUntilUs = 0;
  state.pausedUntilUs = 0;
  state.ratePerSecond = Math.max(
    limits.minRatePerSecond,
    BREAKER.restartShare * limits.ratePerSecond,
  );
  state.tatUs = emptied(state, limits, nowUs);
  state.cutUs = nowUs;
  state.raisedUs = nowUs;
  clearCounts(state);
}

function clearCounts(state: Draft): void {
  state.total = 0;
  state.failed = 0;
  state.slow = 0;
  state.throttled = 0;
  state.consecutive = 0;
  state.strainedUs = 0;
  state.failing.clear();
}

function grant(
  state: Draft,
  ask: AdmitRequest,
  limits: GuardLimits,
  nowUs: number,
): Pick<AdmitResponse, "granted" | "waitUs" | "turnUs" | "ticket"> {
  const none = (waitUs: number) => ({ granted: 0, waitUs, turnUs: 0, ticket: "" });
  switch (state.mode) {
    case "isolated":
      return none(BREAKER.isolatedUs);
    case "open":
      return none(state.untilUs - nowUs);
    case "halfOpen":
      if (nowUs < state.ticketUntilUs) return none(state.ticketUntilUs - nowUs);
      if (ask.probe === "") return none(limits.breaker.openMs * 1_000);
      state.ticket = ask.probe;
      state.ticketUntilUs = nowUs + BREAKER.ticketUs;
      // The probe waits for no token, but takes one.
      state.tatUs = Math.ceil(Math.max(state.tatUs, nowUs) + 1e6 / state.ratePerSecond);
      return { granted: 1, waitUs: 0, turnUs: 0, ticket: ask.probe };
    case "closed":
      break;
  }
  if (nowUs < state.pausedUntilUs) return none(ask.want > 0 ? state.pausedUntilUs - nowUs : 0);
  const reportsWell = ask.generation === state.generation && isWell(ask);
  if (ask.want === 0) {
    if (state.order.size > 0) raiseRate(state, { isLimited: true, reportsWell }, limits, nowUs);
    return none(0);
  }
  const share = Math.ceil((2 * limits.burst) / Math.max(1, state.live.size));
  const want = Math.max(ask.need, Math.min(ask.want, MAX_LEASE));
  const most = Math.max(ask.need, Math.min(want, share));
  const lease = leaseInOrder(state, { ...ask, want }, { limits, nowUs, most });
  raiseRate(
    state,
    { isLimited: lease.granted < most || lease.waitUs > 0, reportsWell },
    limits,
    nowUs,
  );
  return { ...lease, ticket: "" };
}

/** Leases tokens if the worker's turn has come; otherwise gives it a place. */
function leaseInOrder(
  state: Draft,
  ask: AdmitRequest,
  at: { readonly limits: GuardLimits; readonly nowUs: number; readonly most: number },
): Pick<AdmitResponse, "granted" | "waitUs" | "turnUs"> {
  const { worker, rank, want, turn } = ask;
  const { limits, nowUs, most } = at;
  const { order } = state;
  const isOrdered = rank !== TOKEN_RANK.critical;
  const takesTurn = isOrdered && turn !== "none";
  if (takesTurn && order.get(worker)?.rank !== rank) order.delete(worker);
  const ahead = isOrdered ? aheadOf(state, ask, nowUs) : 0;
  const isContended = order.size > (order.has(worker) ? 1 : 0);
  const lease = leaseTokens(limits, state, { ...ask, nowUs, most }, { ahead, isContended });
  const { granted, amount, level } = lease;
  state.tatUs = lease.tatUs;
  const until = (tokens: number) =>
    turnUs(limits, state.ratePerSecond, { ahead: tokens, amount, level, rank });
  if (granted === 0) {
    const waitUs = until(ahead);
    if (takesTurn) book(state, ask, { amount, untilUs: nowUs + waitUs });
    return { granted, waitUs, turnUs: takesTurn ? waitUs : 0 };
  }
  state.promisedUs = Math.max(state.promisedUs, nowUs + lease.waitUs);
  if (takesTurn) order.delete(worker);
  const returns = takesTurn && isContended && (want > granted || turn === "again");
  if (!returns) return { granted, waitUs: lease.waitUs, turnUs: 0 };
  const nextUs = until(aheadOf(state, ask, nowUs));
  book(state, ask, { amount, untilUs: nowUs + nextUs });
  return { granted, waitUs: lease.waitUs, turnUs: nextUs };
}

const isWell = ({ ok, late, failed, throttled }: AdmitRequest): boolean =>
  ok + late > 0 && failed + throttled === 0;

/** Raises the rate gradually, only while it limits the work: an idle fleet gives no evidence about the server. */
function raiseRate(
  state: Draft,
  { isLimited, reportsWell }: { readonly isLimited: boolean; readonly reportsWell: boolean },
  limits: GuardLimits,
  nowUs: number,
): void {
  if (state.ratePerSecond >= limits.ratePerSecond) return;
  if (nowUs - state.cutUs < BREAKER.cutEveryUs || !isLimited) {
    state.raisedUs = nowUs;
    return;
  }
  if (!reportsWell) return;
  const sinceUs = Math.min(1e6, nowUs - state.raisedUs);
  const raise = (BREAKER.raiseShare * limits.ratePerSecond * sinceUs) / 1e6;
  const from = state.ratePerSecond;
  const to = Math.min(limits.ratePerSecond, from + raise);
  state.tatUs = rescaledTat(state, nowUs, { from, to });
  state.ratePerSecond = to;
  state.raisedUs = nowUs;
}

function expire(times: Map<string, number>, beforeUs: number): void {
  for (const [worker, atUs] of times) if (atUs <= beforeUs) times.delete(worker);
}
