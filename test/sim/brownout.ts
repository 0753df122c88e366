import {
  nextDelay,
  defineBackoff,
  guardLimits,
  type AdmitRequest,
  type Gate,
  type GuardLimits,
} from "@konverge/core";
import { admit as admitStep, newGuardState } from "./model/admit.ts";
import type { TokenPool } from "../../libs/guard/src/token-pool-options.ts";
import { createTokenPool } from "../../libs/guard/src/token-pool.ts";
import { createServerModel, type ServerModel } from "./server-model.ts";
import { createVirtualClock, type VirtualClock } from "./virtual-clock.ts";

export interface BrownoutOptions {
  readonly workers: number;
  readonly keys: number;
  /** Events per second, on random keys. */
  readonly eventsPerSecond: number;
  readonly policy: "guard" | "jitter";
  /** Seats during the fault: 2 of 20 is a brownout, 0 an outage. */
  readonly faultSeats: number;
  readonly fromMs: number;
  readonly toMs: number;
  readonly endMs: number;
  readonly rate: number;
  readonly burst: number;
  readonly random: () => number;
}

export interface BrownoutResult {
  /** Calls during the fault, maximum of calls per second in the run, calls per event. */
  readonly sentDuring: number;
  readonly peakPerSecond: number;
  readonly sentPerEvent: number;
  /** Time from the end of the fault to a second with successes for 85 % of the events and few failures; undefined if never. */
  readonly recoveredMs: number | undefined;
  /** Keys with events that no success has covered at the end. */
  readonly pendingKeys: number;
  readonly sent: readonly number[];
  readonly good: readonly number[];
}

const SEATS = 20;
const SERVICE_MS = 100;
const LINE = 400;
const DEADLINE_MS = 1_000;
const PER_WORKER = 4;
const REDIS_MS = 1;
const backoffPolicy = defineBackoff({
  baseMs: 250,
  factor: 2,
  capMs: 30_000,
  steps: Infinity,
  jitter: { kind: "full" },
});

/**
 * A fleet on one virtual clock: idle workers take keys with events and make one call each, through the production code of the
 * guard's local side and the reference model. The server loses most of its seats for a while.
 */
export async function simulateBrownout(options: BrownoutOptions): Promise<BrownoutResult> {
  const { random } = options;
  const clock = createVirtualClock();
  const server = createServerModel({
    clock,
    random,
    seats: SEATS,
    serviceMs: SERVICE_MS,
    line: LINE,
  });
  const fleet = createFleet(options, clock, server);
  clock.schedule(options.fromMs, () => server.setSeats(options.faultSeats));
  clock.schedule(options.toMs, () => server.setSeats(SEATS));
  let events = 0;
  const newsAt = () => {
    fleet.news(Math.floor(random() * options.keys));
    events += 1;
    clock.schedule((-Math.log(1 - random()) * 1_000) / options.eventsPerSecond, newsAt);
  };
  clock.schedule(0, newsAt);
  await clock.run(options.endMs);
  const { sent, good } = server;
  const total = sum(sent);
  return {
    sentDuring: sum(
      sent.slice(Math.floor(options.fromMs / 1_000), Math.floor(options.toMs / 1_000)),
    ),
    peakPerSecond: sent.reduce((most, calls) => Math.max(most, calls), 0),
    sentPerEvent: Math.round((total / events) * 100) / 100,
    recoveredMs: recovery(options, sent, good),
    pendingKeys: fleet.pending(),
    sent,
    good,
  };
}

function createFleet(options: BrownoutOptions, clock: VirtualClock, server: ServerModel) {
  const { random, policy } = options;
  const waiting: number[] = [];
  const dirty = new Set<number>();
  const busy = new Set<number>();
  const failures = new Map<number, number>();
  const limits = guardLimits({ ratePerSecond: options.rate, burst: options.burst });
  const store = createStore(limits, clock);
  const shares: TokenPool[] = [];
  const idle: number[] = [];
  const gates: Gate[] = Array.from({ length: options.workers }, (_, worker) => {
    for (let slot = 0; slot < PER_WORKER; slot++) idle.push(worker);
    if (policy === "jitter")
      return { admit: () => Promise.resolve({ waitedMs: 0, settle: () => undefined }) };
    const share = createTokenPool({
      workerId: `w${worker}`,
      limits,
      maxInFlight: 64,
      admit: (ask) => store(ask),
      configure: () => Promise.resolve(),
      reachable: () => true,
      runId: () => "sim",
      probe: async () => probe(worker),
      onBreaker: (news) => {
        for (const other of shares) if (other !== share) other.learn(news);
        if (news.mode === "closed") dispatch();
      },
      onTransition: () => undefined,
      onHealth: () => undefined,
      onRevision: () => undefined,
      onError: (error) => {
        throw error;
      },
      clock: () => clock.nowMs,
      random,
      schedule: clock.schedule,
    });
    shares.push(share);
    return share;
  });
  const isOpen = () => policy === "guard" && shares[0]?.breaker.mode !== "closed";

  const send = async (gate: Gate, isProbe: boolean): Promise<boolean> => {
    const permit = await gate.admit({
      verb: "get",
      resource: "things",
      priority: "event",
      probe: isProbe,
    });
    return new Promise((resolve) => {
      server.send(DEADLINE_MS, (result) => {
        permit.settle(result);
        resolve(result.kind === "response" && result.status === 200);
      });
    });
  };
  const probe = async (worker: number): Promise<void> => {
    const gate = gates[worker];
    if (gate !== undefined) await send(gate, true);
  };
  const requeue = (key: number, afterMs: number) => {
    clock.schedule(afterMs, () => {
      waiting.push(key);
      dispatch();
    });
  };
  const attempt = async (worker: number, key: number) => {
    const gate = gates[worker];
    if (gate === undefined) return;
    busy.add(key);
    dirty.delete(key);
    try {
      if (await send(gate, false)) {
        failures.delete(key);
        // Events that arrived meanwhile cause the follow-up.
        if (dirty.has(key)) waiting.push(key);
      } else {
        const count = failures.get(key) ?? 0;
        failures.set(key, count + 1);
        dirty.add(key);
        const step = nextDelay(backoffPolicy, count, random);
        requeue(key, step.kind === "wait" ? step.afterMs : 0);
      }
    } catch (error) {
      dirty.add(key);
      requeue(key, (error as { retryAfterMs?: number }).retryAfterMs ?? 1_000);
    }
    busy.delete(key);
    idle.push(worker);
    dispatch();
  };
  function dispatch(): void {
    while (waiting.length > 0 && idle.length > 0 && !isOpen()) {
      const key = waiting.shift() ?? 0;
      // Idle workers in turn, like processes on one queue.
      const worker = idle.shift() ?? 0;
      void attempt(worker, key);
    }
  }
  return {
    news(key: number) {
      const isKnown = dirty.has(key) || busy.has(key);
      dirty.add(key);
      if (isKnown) return;
      waiting.push(key);
      dispatch();
    },
    pending: () => new Set([...dirty, ...busy]).size,
  };
}

/** Replaces the script: one shared state, with a latency of 1 ms. */
function createStore(limits: GuardLimits, clock: VirtualClock) {
  let state = newGuardState(limits, 0, "sim");
  return (ask: AdmitRequest) =>
    new Promise<Awaited<ReturnType<Parameters<typeof createTokenPool>[0]["admit"]>>>((resolve) => {
      clock.schedule(REDIS_MS / 2, () => {
        const step = admitStep(state, ask, limits, Math.round(clock.nowMs * 1_000));
        ({ state } = step);
        clock.schedule(REDIS_MS / 2, () =>
          resolve({ kind: "answer", revision: 1, ...step.answer }),
        );
      });
    });
}

function recovery(
  { toMs, eventsPerSecond }: BrownoutOptions,
  sent: readonly number[],
  good: readonly number[],
): number | undefined {
  for (let second = Math.ceil(toMs / 1_000); second + 2 < sent.length; second++) {
    const seconds = [second, second + 1, second + 2];
    const isWell = seconds.every((one) => {
      const failed = (sent[one] ?? 0) - (good[one] ?? 0);
      return (good[one] ?? 0) >= 0.6 * eventsPerSecond && failed <= 0.25 * (sent[one] ?? 0);
    });
    const total = seconds.reduce((calls, one) => calls + (good[one] ?? 0), 0);
    if (isWell && total >= 3 * 0.85 * eventsPerSecond) return second * 1_000 - toMs;
  }
  return undefined;
}

/** Seconds without a call are holes, which `reduce` skips. */
const sum = (numbers: readonly number[]): number => numbers.reduce((total, one) => total + one, 0);
