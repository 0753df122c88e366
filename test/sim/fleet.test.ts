import {
  DEFAULT_BREAKER_LIMITS,
  bucketSize,
  guardLimits,
  LARGEST_FLOOR,
  type CallPriority,
  type GateCall,
  type GuardLimits,
} from "@konverge/core";
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { largestExcess } from "./largest-excess.ts";
import {
  answered,
  callForEver,
  createVirtualFleet,
  getCall,
  type Network,
  type VirtualFleet,
  type VirtualServer,
  type VirtualWorker,
} from "./virtual-fleet.ts";
import type { VirtualRedis } from "./virtual-redis.ts";
import { isLongRun, seed } from "../support/test-run.ts";

const timeout = 600_000;
const rounding = 0.01;

/** Generates scenarios, equal for equal seeds. */
function* drawn<T>(arbitrary: fc.Arbitrary<T>): Generator<T & { readonly seed: number }> {
  for (let i = 0; ; i += 1) {
    const [scenario] = fc.sample(arbitrary, { seed: seed + i, numRuns: 1 });
    yield { ...(scenario as T), seed: seed + i };
  }
}

function every(fleet: VirtualFleet, ms: () => number, happen: () => void): void {
  fleet.clock.schedule(ms(), () => {
    happen();
    every(fleet, ms, happen);
  });
}

const scenarios = fc.record({
  limits: fc
    .record({
      ratePerSecond: fc.constantFrom(...(isLongRun ? [10, 50] : []), 333.25, 2_000, 4_000),
      spare: fc.constantFrom(2, 10, 64, 300),
      tokenTtlMs: fc.constantFrom(50, 100, 200),
      maxWaitMs: fc.constantFrom(100, 1_000),
    })
    .map(({ spare, ...rest }): GuardLimits => ({
      ...rest,
      breaker: DEFAULT_BREAKER_LIMITS,
      minRatePerSecond: rest.ratePerSecond / 10,
      burst: Math.ceil((rest.ratePerSecond * rest.tokenTtlMs) / 1_000) + spare,
    })),
  workers: fc.constantFrom(1, 5, 5, 20, 20, 50, ...(isLongRun ? [200] : [])),
  callers: fc.constantFrom(2, 16, 40),
  thinkMs: fc.constantFrom(0, 100, 2_000),
  network: fc.record({
    delayMs: fc.constantFrom<Network["delayMs"][]>([0.1, 0.5], [1, 60], [20, 180]),
    lostAsks: fc.constantFrom(0, 0.05),
    lostAnswers: fc.constantFrom(0, 0.05),
    doubled: fc.constantFrom(0, 0.1),
    lostNews: fc.constantFrom(0, 0.5, 1),
  }),
  /** Share of failing calls while the server is overloaded. */
  trouble: fc.constantFrom(0, 0.3, 1),
  troubles: fc.boolean(),
});

type Scenario = typeof scenarios extends fc.Arbitrary<infer T> ? T : never;

const priorities: readonly CallPriority[] = ["critical", "interactive", "event", "retry", "resync"];

/** Callers of all classes, some with expensive calls, in bursts after idle times and continuously. */
function work(
  fleet: VirtualFleet,
  worker: VirtualWorker,
  { limits, callers, thinkMs }: Pick<Scenario, "limits" | "callers" | "thinkMs">,
): void {
  // No call costs more.
  const dearest = Math.max(1, Math.floor((1 - LARGEST_FLOOR) * bucketSize(limits)));
  const next = () => {
    const priority = priorities[Math.floor(fleet.random() * priorities.length)] ?? "event";
    const isDear = fleet.random() < 0.1;
    const call: GateCall = isDear
      ? {
          ...getCall,
          verb: "list",
          priority,
          cost: 1 + Math.floor(fleet.random() * Math.min(10, dearest)),
        }
      : { ...getCall, priority };
    // Together with all others, so that many calls meet a full bucket.
    const toBeatMs = thinkMs === 0 ? 0 : thinkMs - (fleet.clock.nowMs % thinkMs);
    return { call, thinkMs: toBeatMs };
  };
  for (let i = 0; i < callers; i += 1) callForEver(worker, next);
}

/** Workers stall one by one and resume together, with old tokens and pending messages. */
function sleep({ clock, random, workers }: VirtualFleet): void {
  const wakeMs = clock.nowMs + 1_000;
  for (const worker of workers) {
    clock.schedule(random() * 900, () => worker.stall(wakeMs - clock.nowMs));
  }
}

/** Stalls, crashes with a successor, broken connections, a new Redis, a clock that steps back. */
function disturb(fleet: VirtualFleet, join: (worker: VirtualWorker) => void): void {
  const { random, redis, clock } = fleet;
  const anyWorker = () => fleet.workers[Math.floor(random() * fleet.workers.length)];
  every(
    fleet,
    () => 20 + random() * 400,
    () => {
      const what = random();
      if (what < 0.5) anyWorker()?.stall(random() * 1_000);
      else if (what < 0.7) {
        sleep(fleet);
      } else if (what < 0.85) {
        anyWorker()?.crash();
        join(fleet.addWorker());
      } else if (what < 0.9 && redis.isUp) fleet.outage(random() * 1_500);
      else if (what < 0.94 && redis.isUp) {
        fleet.outage(random() * 1_500, (one) => one.failOver(one.state));
      } else if (what < 0.97) redis.offsetUs -= Math.floor(random() * 6e6);
      else if (clock.nowMs > 0) redis.offsetUs -= 3.6e9;
    },
  );
}

test(
  `P5 L1: no window of the whole fleet's calls exceeds rate * T + burst (seed ${seed})`,
  { timeout },
  async () => {
    const sums = { tokens: 0, histories: 0, worst: 0, openings: 0, errors: 0 };
    for (const { limits, troubles, trouble, ...rest } of drawn(scenarios)) {
      const server: VirtualServer = ({ atMs }) => {
        const isIll = atMs % 6_000 > 5_000 && fleet.random() < trouble;
        if (!isIll) return { result: answered(200), tookMs: 1 + fleet.random() * 20 };
        const is429 = trouble < 1 && fleet.random() < 0.2;
        return is429
          ? { result: { kind: "response", status: 429, retryAfterMs: 300 }, tookMs: 1 }
          : { result: answered(503), tookMs: 1 };
      };
      const fleet = createVirtualFleet({ ...rest, limits, server });
      const join = (worker: VirtualWorker) => work(fleet, worker, { limits, ...rest });
      fleet.workers.forEach(join);
      if (troubles) disturb(fleet, join);
      await fleet.clock.run(12_000);
      const excess = largestExcess(fleet.sent, limits.ratePerSecond);
      const scenario = JSON.stringify({ limits, troubles, trouble, ...rest });
      expect(excess, scenario).toBeLessThanOrEqual(limits.burst + rounding);
      sums.tokens += fleet.sent.reduce((sum, { tokens }) => sum + tokens, 0);
      sums.histories += 1;
      sums.worst = Math.max(sums.worst, excess / limits.burst);
      sums.openings += fleet.redis.moves.filter(({ to }) => to === "open").length;
      sums.errors += fleet.errors.length;
      if (sums.tokens >= (isLongRun ? 4e5 : 4e4)) break;
    }
    console.log(sums);
  },
);

test(`P5 L1: tokens have expired when a fleet that stalled gradually resumes at once (seed ${seed})`, async () => {
  const limits = guardLimits({ ratePerSecond: 500, burst: 27, tokenTtlMs: 50 });
  const network: Partial<Network> = { delayMs: [5, 20] };
  const fleet = createVirtualFleet({ limits, workers: 50, seed, network });
  for (const worker of fleet.workers) {
    for (let i = 0; i < 10; i += 1) callForEver(worker, () => ({ call: getCall }));
  }
  every(
    fleet,
    () => 2_000,
    () => sleep(fleet),
  );
  await fleet.clock.run(20_000);
  expect(fleet.sent.length).toBeGreaterThan(4_000);
  expect(largestExcess(fleet.sent, limits.ratePerSecond)).toBeLessThanOrEqual(limits.burst);
});

test.each([
  { workers: 1, callers: 64, ratePerSecond: 500, burst: 1_000 },
  { workers: 40, callers: 1, ratePerSecond: 200, burst: 60 },
  { workers: 40, callers: 10, ratePerSecond: 200, burst: 60 },
  { workers: 200, callers: 2, ratePerSecond: 500, burst: 150 },
  { workers: 8, callers: 50, ratePerSecond: 2_000, burst: 500 },
  { workers: 20, callers: 2, ratePerSecond: 10, burst: 20 },
])(
  `P5 L2: $workers workers with $callers callers each use the whole rate of $ratePerSecond/s (seed ${seed})`,
  async ({ workers, callers, ...limits }) => {
    const fleet = createVirtualFleet({ limits: guardLimits(limits), workers, seed });
    for (const worker of fleet.workers) {
      for (let i = 0; i < callers; i += 1) callForEver(worker, () => ({ call: getCall }));
    }
    const [fromMs, untilMs] = [2_000, limits.ratePerSecond < 100 ? 60_000 : 7_000];
    await fleet.clock.run(untilMs);
    const perMs = fleet.sent.filter(({ atMs }) => atMs >= fromMs).length / (untilMs - fromMs);
    expect((perMs * 1_000) / limits.ratePerSecond).toBeGreaterThan(0.97);
    expect(fleet.errors).toEqual([]);
  },
);

test(`P5 L3: a process serves higher classes first, and each class in order (seed ${seed})`, async () => {
  const limits = guardLimits({ ratePerSecond: 100, burst: 50 });
  const fleet = createVirtualFleet({ limits, workers: 1, seed });
  const [worker] = fleet.workers as [VirtualWorker];
  const classes: Partial<GateCall>[] = [
    { priority: "resync" },
    { priority: "retry" },
    { priority: "event" },
    { priority: "interactive" },
    { priority: "resync", running: true },
    { priority: "critical" },
  ];
  const calls = Array.from({ length: 240 }, (_, i) => ({ ...getCall, ...classes[i % 6], i }));
  // The bucket is empty at the start, so all calls wait.
  for (const call of calls) void worker.call(call);
  await fleet.clock.run(10_000);
  const order = fleet.sent.map(({ call }) => (call as (typeof calls)[number]).i);
  const rank = (i: number) => 5 - (i % 6);
  expect(order).toEqual(calls.map(({ i }) => i).toSorted((a, b) => rank(a) - rank(b) || a - b));
});

test(`P5 L3: a waiting call that is raised precedes the calls of its former class (seed ${seed})`, async () => {
  const limits = guardLimits({ ratePerSecond: 100, burst: 50 });
  const fleet = createVirtualFleet({ limits, workers: 1, seed });
  const [worker] = fleet.workers as [VirtualWorker];
  const order: string[] = [];
  let raise: ((priority: CallPriority) => void) | undefined;
  // The bucket is empty at the start, so all calls wait.
  for (let i = 0; i < 20; i += 1) {
    const waiting = worker.share.admit(
      { ...getCall, priority: "resync" },
      i === 15 ? { onWait: (handle) => (raise = (priority) => handle.raise(priority)) } : {},
    );
    const send = async () => {
      const permit = await waiting;
      order.push(`${i}`);
      permit.settle(answered(200));
    };
    void send();
  }
  for (let i = 0; i < 5; i += 1) void worker.call(getCall).then(() => order.push("event"));
  worker.schedule(1, () => raise?.("retry"));
  worker.schedule(2, () => raise?.("event"));
  // A lower class has no effect.
  worker.schedule(3, () => raise?.("resync"));
  await fleet.clock.run(5_000);
  expect(order.slice(0, 8).toSorted()).toEqual(["0", "1", "15", ...Array(5).fill("event")]);
  expect(order.slice(0, 6)).toContain("15");
  expect(order).toHaveLength(25);
});

test.each([
  { workers: 1, each: 400 },
  { workers: 10, each: 50 },
  { workers: 100, each: 10 },
])(
  `P5 L3: of $workers * $each calls at once none waits much longer than its turn (seed ${seed})`,
  async ({ workers, each }) => {
    const limits = guardLimits({ ratePerSecond: 200, burst: 60 });
    const fleet = createVirtualFleet({ limits, workers, seed });
    for (const worker of fleet.workers) {
      for (let i = 0; i < each; i += 1) void worker.call(getCall);
    }
    await fleet.clock.run(30_000);
    expect(fleet.sent).toHaveLength(workers * each);
    for (const [i, { waitedMs }] of fleet.sent.entries()) {
      // Workers that were expected to call again leave their places unused.
      expect(waitedMs).toBeLessThanOrEqual(
        (1.2 * (i + 1) * 1_000) / limits.ratePerSecond + limits.maxWaitMs,
      );
    }
  },
);

/** Ten calls of a class, in a process with more events than the rate allows, or in another process of the fleet. */
async function waitBesideEvents(priority: CallPriority, where: "here" | "elsewhere") {
  const limits = guardLimits({ ratePerSecond: 100, burst: 200 });
  const fleet = createVirtualFleet({ limits, workers: 5, seed });
  const [first, ...others] = fleet.workers as [VirtualWorker, ...VirtualWorker[]];
  for (const worker of where === "here" ? fleet.workers : others) {
    for (let i = 0; i < 20; i += 1) callForEver(worker, () => ({ call: getCall }));
  }
  await fleet.clock.run(3_000);
  const ends = Array.from({ length: 10 }, () => first.call({ ...getCall, priority }));
  await fleet.clock.run(20_000);
  const waits = ends.map(async (pending) => {
    const end = await Promise.race([pending, Promise.resolve(undefined)]);
    return end?.kind === "sent" ? end.waitedMs : Infinity;
  });
  return (await Promise.all(waits)).toSorted((a, b) => a - b) as [number, ...number[]];
}

test(`P5 L3: with more events than the rate allows, lower classes wait until they have aged, but no longer (seed ${seed})`, async () => {
  for (const where of ["here", "elsewhere"] as const) {
    for (const priority of ["retry", "resync"] as const) {
      const waits = await waitBesideEvents(priority, where);
      expect(waits[0]).toBeGreaterThanOrEqual(9_000);
      expect(waits.at(-1)).toBeLessThanOrEqual(13_000);
    }
    const event = await waitBesideEvents("event", where);
    expect(event.at(-1)).toBeLessThanOrEqual(3_000);
  }
});

test(`P5 L5: aborted callers neither add calls nor delay others (seed ${seed})`, async () => {
  const limits = guardLimits({ ratePerSecond: 500, burst: 60 });
  // Slow enough that some abort during their call.
  const server: VirtualServer = () => ({ result: answered(200), tookMs: 50 });
  const fleet = createVirtualFleet({ limits, workers: 20, seed, server });
  const { random, clock } = fleet;
  const ends = { sent: 0, aborted: 0, refused: 0, kept: 0 };
  for (let i = 0; i < 4_000; i += 1) {
    const worker = fleet.workers[Math.floor(random() * 20)] as VirtualWorker;
    const beginMs = Math.floor(random() * 10) * 800;
    clock.schedule(beginMs, () => {
      const abort = random() < 0.5 ? new AbortController() : undefined;
      if (abort !== undefined) clock.schedule(random() * 800, () => abort.abort());
      const call = async () => {
        const end = await worker.call(getCall, abort?.signal);
        if (end.kind === "refused") ends[abort?.signal.aborted === true ? "refused" : "kept"] += 1;
        else ends[end.result.kind === "aborted" ? "aborted" : "sent"] += 1;
      };
      void call();
    });
  }
  await clock.run(20_000);
  expect(largestExcess(fleet.sent, limits.ratePerSecond)).toBeLessThanOrEqual(limits.burst);
  // Only aborted calls were not sent.
  expect(ends.kept).toBe(0);
  expect(ends.sent + ends.aborted + ends.refused).toBe(4_000);
  expect(fleet.sent).toHaveLength(ends.sent + ends.aborted);
  expect(Math.min(ends.refused, ends.aborted)).toBeGreaterThan(20);
  for (const { share } of fleet.workers) expect([share.waiting, share.inFlight]).toEqual([0, 0]);
});

/** Calls of a burst after an idle time, with a data loss of Redis shortly before. */
async function crowdAfter(change: ((redis: VirtualRedis) => void) | undefined) {
  const limits = guardLimits({ ratePerSecond: 100, burst: 200 });
  const fleet = createVirtualFleet({ limits, workers: 20, seed });
  // Redis has the limits, and each worker the state of the breaker.
  for (const worker of fleet.workers) void worker.call(getCall);
  await fleet.clock.run(10_000);
  const fromMs = fleet.clock.nowMs;
  const before = fleet.sent.length;
  if (change !== undefined) fleet.outage(1, change);
  await fleet.clock.run(fromMs + 100);
  for (const worker of fleet.workers) {
    for (let i = 0; i < 20; i += 1) void worker.call(getCall);
  }
  await fleet.clock.run(fromMs + 10_000);
  const sent = fleet.sent.slice(before);
  // Excess of the calls over the rate since the loss.
  const ahead = sent.map(({ atMs }, i) => i + 1 - ((atMs - fromMs) * limits.ratePerSecond) / 1_000);
  return { sent: sent.length, ahead: Math.max(...ahead) };
}

test.each<[string, (redis: VirtualRedis) => void]>([
  ["lost its keys", (redis) => redis.lose()],
  ["is another without them", (redis) => redis.failOver(undefined)],
  ["is another, with a replica's keys", (redis) => redis.failOver(redis.state)],
])(`P5 L6: a Redis that %s gives no burst, only the rate (seed ${seed})`, async (_what, change) => {
  const { sent, ahead } = await crowdAfter(change);
  expect(sent).toBe(400);
  expect(ahead).toBeLessThanOrEqual(rounding);
  // Without the loss, the same burst meets a full bucket.
  expect((await crowdAfter(undefined)).ahead).toBeGreaterThan(100);
});

test.each<[string, (fleet: VirtualFleet) => void]>([
  ["loses its keys", (fleet) => fleet.redis.lose()],
  ["restarts without them", (fleet) => fleet.outage(100, (redis) => redis.failOver(undefined))],
])(
  `P5 L6: a Redis that %s under load voids promised tokens (seed ${seed})`,
  async (_what, lose) => {
    const limits = guardLimits({ ratePerSecond: 300, burst: 60 });
    for (let run = 0; run < (isLongRun ? 20 : 5); run += 1) {
      const fleet = createVirtualFleet({ limits, workers: 6, seed: seed + run });
      for (const worker of fleet.workers) void worker.call(getCall);
      // A full bucket, which the fleet uses, and then its promised tokens.
      await fleet.clock.run(4_000);
      for (const worker of fleet.workers) crowd(worker, 60);
      for (let atMs = 200; atMs < 9_000; atMs += 2_500) {
        fleet.clock.schedule(atMs + fleet.random() * 200, () => lose(fleet));
      }
      await fleet.clock.run(14_000);
      expect(fleet.sent.length).toBeGreaterThan(300);
      expect(largestExcess(fleet.sent, limits.ratePerSecond)).toBeLessThanOrEqual(limits.burst);
    }
  },
);

test(`P5 L1: workers configured for longer tokens use those of the fleet (seed ${seed})`, async () => {
  const limits = guardLimits({ ratePerSecond: 500, burst: 27, tokenTtlMs: 50 });
  const own = { ...limits, burst: 600, tokenTtlMs: 1_000 };
  const network: Partial<Network> = { delayMs: [5, 20] };
  const fleet = createVirtualFleet({ limits, own, workers: 50, seed, network });
  for (const worker of fleet.workers) crowd(worker, 10);
  every(
    fleet,
    () => 2_000,
    () => sleep(fleet),
  );
  await fleet.clock.run(20_000);
  expect(fleet.sent.length).toBeGreaterThan(4_000);
  expect(largestExcess(fleet.sent, limits.ratePerSecond)).toBeLessThanOrEqual(limits.burst);
});

function crowd(worker: VirtualWorker, callers: number): void {
  for (let i = 0; i < callers; i += 1) callForEver(worker, () => ({ call: getCall }));
}
