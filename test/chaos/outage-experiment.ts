import { randomUUID } from "node:crypto";
import { createLocalGate } from "@konverge/core";
import { createGuard, type GuardEvent } from "@konverge/guard";
import { startLoad, untilSteady, type Arm, type RunningLoad } from "./outage-load.ts";
import type { OutagePlane } from "./outage-plane.ts";
import { until } from "../support/until.ts";

export type Fault = "etcd" | "throttle" | "restart";

/** The size of the load and the limits of the guard, in proportion to each other. */
export interface LoadShape {
  readonly keys: number;
  /** Concurrent attempts per worker. */
  readonly concurrency: number;
  readonly ratePerSecond: number;
  readonly burst: number;
}

/** The load of the docs. It needs a machine of its own. */
export const DOCUMENTED: LoadShape = {
  keys: 1_000,
  concurrency: 16,
  ratePerSecond: 500,
  burst: 1_000,
};

export interface ExperimentOptions {
  readonly plane: OutagePlane;
  readonly redisUrl: string;
  readonly fault: Fault;
  /** The minimum length of the fault. It also lasts until `leastSent` calls were sent. */
  readonly faultMs: number;
  readonly leastSent?: number;
  readonly shape: LoadShape;
  readonly arm: "guard" | "jitter";
}

export interface ArmResult {
  readonly arm: "guard" | "jitter";
  /** Calls sent while the fault lasted. */
  readonly sentDuring: number;
  readonly deferred: number;
  /** Keys that did not recover after the fault. */
  readonly lost: number;
  /** Time from the end of the fault until 80 % of the normal throughput and a success of every key. */
  readonly recoveredMs: number;
  /** Maximum of calls per second after the fault. */
  readonly peakAfter: number;
  /** Calls per second since the start of the load, with the start and end of the fault. */
  readonly perSecond: readonly number[];
  readonly faultFromMs: number;
  readonly faultToMs: number;
  readonly events: readonly GuardEvent[];
}

const WORKERS = 4;
/** Returns the maximum of calls in flight when the fault begins. */
export const slotsOf = ({ concurrency }: LoadShape): number => WORKERS * concurrency;
const PERIOD_MS = 5_000;
const DEADLINE_MS = 1_000;

/** Runs one arm with one fault: steady, during the fault, and until it is steady again. */
export async function runArm(options: ExperimentOptions): Promise<ArmResult> {
  const { plane, fault, faultMs, shape, leastSent = 0 } = options;
  const { keys, concurrency } = shape;
  const events: GuardEvent[] = [];
  const load = await startLoad({
    kubeconfig: plane.kubeconfig,
    namespace: plane.namespace,
    keys,
    workers: WORKERS,
    concurrency,
    periodMs: PERIOD_MS,
    deadlineMs: DEADLINE_MS,
    arm: options.arm === "guard" ? guardArm(options.redisUrl, shape, events) : jitterArm,
  });
  const usual = (keys * 1_000) / PERIOD_MS;
  try {
    const steady = (sinceMs: number, what: string) =>
      untilSteady(load, { sinceMs, perSecond: usual }, what);
    await steady(0, "the load is steady before the fault");
    const faultFromMs = load.now();
    const isOver = () =>
      load.now() >= faultFromMs + faultMs && load.sentBetween(faultFromMs, Infinity) >= leastSent;
    await during(plane, fault, () => until("the fault is over", isOver, faultMs + 120_000));
    const faultToMs = load.now();
    await steady(faultToMs, "the load is steady after the fault");
    await reachAll(load, keys, faultToMs);
    const recoveredMs = load.now() - faultToMs;
    return {
      arm: options.arm,
      sentDuring: load.sentBetween(faultFromMs, faultToMs),
      deferred: load.log.deferred,
      lost: keys - load.reachedSince(faultToMs),
      recoveredMs,
      peakAfter: peak(load, faultToMs),
      perSecond: perSecond(load),
      faultFromMs,
      faultToMs,
      events,
    };
  } finally {
    await load.stop();
  }
}

async function during(
  plane: OutagePlane,
  fault: Fault,
  wait: () => Promise<unknown>,
): Promise<void> {
  switch (fault) {
    case "etcd":
      plane.freezeEtcd();
      await wait();
      plane.thawEtcd();
      return;
    case "throttle":
      await plane.throttle(true);
      await wait();
      await plane.throttle(false);
      return;
    case "restart":
      // Its start takes some more seconds.
      plane.killServer();
      await wait();
      await plane.startServer();
  }
}

async function reachAll(load: RunningLoad, keys: number, sinceMs: number): Promise<void> {
  const endMs = load.now() + 120_000;
  while (load.reachedSince(sinceMs) < keys && load.now() < endMs) {
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

function perSecond(load: RunningLoad): number[] {
  const seconds = Array.from({ length: Math.ceil(load.now() / 1_000) }, () => 0);
  for (const ms of load.log.sentMs) {
    const second = Math.floor(ms / 1_000);
    seconds[second] = (seconds[second] ?? 0) + 1;
  }
  return seconds;
}

function peak({ log }: RunningLoad, sinceMs: number): number {
  const after = log.sentMs.filter((ms) => ms >= sinceMs);
  let most = 0;
  for (let first = 0, last = 0; last < after.length; last++) {
    while ((after[last] ?? 0) - (after[first] ?? 0) >= 1_000) first++;
    most = Math.max(most, last - first + 1);
  }
  return most;
}

/** Jittered retries only, as in most controllers. */
const jitterArm: Arm = {
  name: "jitter",
  openGate: () => Promise.resolve(createLocalGate({ ratePerSecond: 100_000, burst: 100_000 })),
};

function guardArm(
  redisUrl: string,
  { ratePerSecond, burst }: LoadShape,
  events: GuardEvent[],
): Arm {
  const cluster = `outage-${randomUUID()}`;
  return {
    name: "guard",
    openGate: (workerId, probe) =>
      createGuard({
        redis: { url: redisUrl },
        cluster,
        workerId,
        probe,
        limits: { ratePerSecond, burst },
        onEvent: (event) => events.push(event),
      }),
  };
}
